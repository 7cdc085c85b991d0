import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { Opening } from "../../agent/agent.ts";
import type { ChatTurn, ChatTurnUsage, SentMessage } from "../../engine/chat/chat-turn.ts";
import type { AssistantMessage, Message, ToolDefinition } from "../../message.ts";
import { hashOf } from "../inputs/input.ts";

/** The conversation with an engine that returns messages. It only grows. */
export class ChatConversation {
  readonly #messages: SentMessage[] = [];
  #tools: readonly ToolDefinition[] = [];
  #hash = "";
  #firstPromptCount: number | undefined;
  #usage: ChatTurnUsage | undefined;

  /** The messages so far. */
  get messages(): readonly SentMessage[] {
    return [...this.#messages];
  }

  get tools(): readonly ToolDefinition[] {
    return this.#tools;
  }

  /** Hash of the tools and of all messages so far. */
  get promptHash(): string {
    return this.#hash;
  }

  /** Number of tokens of the last prompt and its turn. 0 before the first turn, and if the engine reports no counts. */
  get contextTokenCount(): number {
    const { promptTokenCount = 0, sampledTokenCount = 0 } = this.#usage ?? {};
    return promptTokenCount + sampledTokenCount;
  }

  /** Number of tokens after the first prompt, as far as the engine has reported them. */
  get episodeTokenCount(): number {
    return Math.max(this.contextTokenCount - (this.#firstPromptCount ?? 0), 0);
  }

  /** Begins with the messages and tools before the first turn. */
  open({ messages, tools }: Opening): void {
    this.#tools = tools;
    this.#hash = hashOf(stringifyPythonJson(tools.map(({ openai }) => openai)));
    this.#add(messages);
  }

  /**
   * Adds a turn and its observations.
   *
   * @param message - The agent's reading of the turn. Further members of the engine's message and calls are added to
   *   it.
   */
  add(turn: ChatTurn, message: AssistantMessage, observations: readonly Message[]): void {
    this.#usage = turn.usage ?? this.#usage;
    this.#firstPromptCount ??= turn.usage?.promptTokenCount;
    const { members } = turn;
    const toolCalls = message.toolCalls?.map((call, index) => ({
      ...call,
      ...(turn.toolCalls[index]?.members && { members: turn.toolCalls[index].members }),
    }));
    const sent = { ...message, ...(toolCalls && { toolCalls }), ...(members && { members }) };
    this.#add([sent, ...observations]);
  }

  #add(messages: readonly SentMessage[]): void {
    this.#messages.push(...messages);
    this.#hash = hashOf([this.#hash, messages]);
  }
}
