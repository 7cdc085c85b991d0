import { InvariantError, RolloutError } from "../../errors.ts";
import type { ToolDefinition } from "../../message.ts";
import type { Task } from "../../task.ts";
import { noSpending } from "../../user/chat/add-spending.ts";
import type { UserSession } from "../../user/user.ts";
import { isObject } from "../../values/is-object.ts";
import type { Action, AgentTurn, Score, Step, World } from "../environment.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { ActionLog } from "../action-log.ts";
import { noSuchTool } from "../tool-call.ts";
import { attributed } from "./failed-request.ts";
import type { PythonMessage, PythonOpening, PythonTurnAnswer } from "./python-answers.ts";
import type { PythonEpisode } from "./python-episode.ts";

/** The answer to the turn that is being performed. */
interface Answered {
  readonly turn: AgentTurn;
  /** The texts of the tools, by the call's id. */
  readonly byCall: ReadonlyMap<string, string>;
  readonly text: string;
  readonly isDone: boolean;
}

/** One attempt at a task of an environment in Python that takes each message of the model whole. */
export class TurnWorld implements World {
  readonly policyText: string;
  readonly tools?: readonly ToolDefinition[];
  readonly #episode: PythonEpisode;
  readonly #task: Task;
  readonly #firstText: string;
  /** False if the model has no tools. A call is then answered here, since the environment would not answer it. */
  readonly #hasTools: boolean;
  readonly #played = new ActionLog();
  #answered: Answered | undefined;
  /** Number of the turn's actions that are performed. */
  #performedCount = 0;
  #isDone = false;

  /** @throws RolloutError if the conversation opens with messages that cannot be shown. */
  constructor(parts: {
    readonly episode: PythonEpisode;
    readonly task: Task;
    readonly opening: PythonOpening;
    readonly policyText: string;
    readonly tools: readonly ToolDefinition[] | undefined;
    readonly hasTools: boolean;
  }) {
    this.#episode = parts.episode;
    this.#task = parts.task;
    this.#hasTools = parts.hasTools;
    const { system, text } = readOpening(
      parts.opening.messages ?? [],
      `Opening task ${parts.task.id} of ${parts.episode.environment}`,
    );
    this.#firstText = text;
    this.policyText = system ?? parts.policyText;
    if (parts.tools !== undefined) this.tools = parts.tools;
  }

  async begin(): Promise<string> {
    return await Promise.resolve(this.#firstText);
  }

  async step(
    action: Action,
    { signal, turn = turnOf(action) }: { readonly signal: AbortSignal; readonly turn?: AgentTurn },
  ): Promise<Step> {
    if (this.#isDone) throw new InvariantError(`Cannot step task ${this.#task.id}: it is done`);
    if (action.type === "call" && !this.#hasTools) {
      this.#played.call({ name: action.name, given: action.arguments, isError: true });
      const { text } = noSuchTool(action.name, new Map());
      return { observation: text, from: "tool", source: action.name, isError: true };
    }
    if (this.#answered?.turn !== turn) {
      this.#answered = await this.#take(turn, signal);
      this.#performedCount = 0;
    }
    const { byCall, text, isDone } = this.#answered;
    const callId = turn.actions[this.#performedCount]?.callId ?? "";
    this.#performedCount += 1;
    this.#isDone = isDone && this.#performedCount >= turn.actions.length;
    const end = this.#isDone ? ({ done: "finished" } as const) : {};
    if (action.type === "say") {
      this.#played.say(action.content);
      return { observation: text, from: "user", source: "user", ...end };
    }
    this.#played.call({ name: action.name, given: action.arguments, isError: false });
    const observation = byCall.get(callId);
    if (observation === undefined && !isDone) {
      throw this.#bad(
        `no answer to the call of ${action.name}, expected a message with the role tool for each call`,
      );
    }
    return { observation: observation ?? "", from: "tool", source: action.name, ...end };
  }

  async #take(turn: AgentTurn, signal: AbortSignal): Promise<Answered> {
    const answer = (await attributed(
      {
        party: "environment",
        what: `Answering the agent in task ${this.#task.id} of ${this.#episode.environment}`,
      },
      async () => await this.#episode.request("turn", requestOf(turn), { signal }),
    )) as PythonTurnAnswer;
    const isDone = answer.done !== undefined && answer.done !== false && answer.done !== null;
    const byCall = new Map<string, string>();
    const texts: string[] = [];
    for (const message of answer.messages) {
      const text = this.#textOf(message);
      if (message.role === "tool") byCall.set(String(message.tool_call_id), text);
      else if (message.role === "user") texts.push(text);
      else throw this.#bad(`a message with the role ${message.role}, expected tool or user`);
    }
    const hasCalls = turn.actions.some(({ action }) => action.type === "call");
    if (!isDone && hasCalls && texts.length > 0 && byCall.size > 0) {
      throw this.#bad("a message of the user after those of the tools, expected one or the other");
    }
    if (!isDone && answer.messages.length === 0)
      throw this.#bad("no message, expected one or the end");
    return { turn, byCall, text: texts.join("\n"), isDone };
  }

  #textOf({ content, role }: PythonMessage): string {
    const text = textOfContent(content);
    if (text !== undefined) return text;
    throw this.#bad(`a message with the role ${role} that has other content than text`);
  }

  #bad(what: string): RolloutError {
    return new RolloutError(
      "environment/bad-step",
      `Cannot use the answer of ${this.#episode.environment} in task ${this.#task.id}: ${what}`,
    );
  }

  async score({ signal, actionCounts }: Parameters<World["score"]>[0]): Promise<Score> {
    const outcome = this.#played.outcome(actionCounts, this.#isDone);
    return await this.#episode.score(outcome, { signal });
  }

  userUsage(): ReturnType<UserSession["usage"]> {
    return noSpending;
  }

  async [Symbol.asyncDispose](options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#episode.close(options.signal);
  }
}

/** Returns the turn of an action that comes alone. */
function turnOf(action: Action): AgentTurn {
  const content = action.type === "say" ? action.content : "";
  return {
    message: { role: "assistant", content },
    finish: "stop",
    actions: [{ callId: action.type === "say" ? "" : "call_0", action }],
  };
}

/** Returns the turn as the protocol has it. The usage has OpenAI's names. */
function requestOf(turn: AgentTurn): Readonly<Record<string, unknown>> {
  const { finish, usage } = turn;
  return {
    message: messageOf(turn),
    finish,
    ...(usage !== undefined && {
      usage: { prompt_tokens: usage.promptTokens, completion_tokens: usage.sampledTokens },
    }),
  };
}

/** Returns the message in OpenAI's form, with those of its calls that are performed. */
function messageOf({ message, actions }: AgentTurn): object {
  const calls = actions.flatMap(({ callId, action }) => {
    if (action.type === "say") return [];
    const written = message.toolCalls?.find(({ id }) => id === callId)?.argumentsText;
    const { name } = action;
    return [{ id: callId, name, arguments: written ?? stringifyPythonJson(action.arguments) }];
  });
  return {
    role: "assistant",
    content: message.content,
    ...(message.reasoning !== undefined && { reasoning_content: message.reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function readOpening(
  messages: readonly PythonMessage[],
  what: string,
): { readonly system?: string; readonly text: string } {
  const roles = messages.map(({ role }) => role);
  const [first] = messages;
  const isRight = /^(system,)?user$/.test(roles.join(","));
  const texts = messages.map(({ content }) => textOfContent(content));
  if (!isRight || texts.includes(undefined)) {
    throw new RolloutError(
      "environment/bad-world",
      `${what}: it opens with ${roles.length === 0 ? "no message" : `messages of ${roles.join(", ")}`}, expected a ` +
        "text of the user, after a text of the system or none",
    );
  }
  return { text: texts.at(-1)!, ...(first!.role === "system" && { system: texts[0]! }) };
}

/** Returns the text of a message's content. `undefined` if it is no text. */
function textOfContent(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  const parts = content.map((part: unknown) =>
    isObject(part) && part["type"] === "text" && typeof part["text"] === "string"
      ? part["text"]
      : undefined,
  );
  return parts.includes(undefined) ? undefined : parts.join("");
}
