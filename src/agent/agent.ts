import type { Action } from "../environment/environment.ts";
import type { ChatToolCall } from "../engine/chat/chat-turn.ts";
import type { AssistantMessage, Message, ToolDefinition } from "../message.ts";
import type { AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { TurnForm } from "./turn-form.ts";

/** The messages and tools of the prompt before the first turn. */
export interface Opening {
  readonly messages: readonly Message[];
  /** Tools for the chat template. Empty if the agent describes tools in its own text. */
  readonly tools: readonly ToolDefinition[];
}

/** One step that a turn leads to. Steps run in order. */
export type Intent =
  /** Performs the action. A call's observation returns under `callId`. */
  | {
      readonly type: "act";
      readonly callId: string;
      readonly action: Action;
      /** True if the call was malformed and has been repaired. */
      readonly repaired?: true;
    }
  /** Does not call the environment. The policy receives the reason under `callId`. */
  | {
      readonly type: "refuse";
      readonly callId: string;
      readonly name: string;
      readonly status: AttemptStatus | "extra-call";
      readonly observation: string;
    }
  /** Skips the call without an observation. The episode records it. */
  | { readonly type: "ignore"; readonly callId: string; readonly name: string };

/** An agent's interpretation of a sampled turn. */
export interface Reading {
  /** The turn as a message. */
  readonly message: AssistantMessage;
  /** The reasoning that was removed before the message was read, or `""`. */
  readonly reasoning: string;
  /** Contains at least one intent that is not `ignore`. */
  readonly intents: readonly Intent[];
  /** Number of the turn's attempts, by status. */
  readonly attemptCounts: Readonly<Partial<Record<AttemptStatus, number>>>;
  /**
   * The form of the turn's calls and reasoning, with positions in the text including its stop literal. Absent for agents
   * without such markup: act and react.
   */
  readonly form?: TurnForm;
}

/** An observation for the policy. */
export interface Observed {
  readonly callId: string;
  readonly name: string;
  readonly from: "tool" | "user";
  readonly text: string;
}

/** The strategy around the policy. It is stateless: the conversation has all state. */
export interface Agent {
  /** The strategy's name, such as `tool-calling`. */
  readonly strategy: string;
  open(start: {
    readonly policyText: string;
    readonly tools: readonly ToolDefinition[];
    readonly firstUserText: string;
    /** The episode's seed. */
    readonly seed: number;
    /** The task's index in its split. */
    readonly taskIndex: number;
  }): Opening;
  /** Reads a sampled turn. It returns a reading for every possible text. */
  read(turn: {
    readonly text: string;
    /** The literal of the stop id that ended the text, which does not contain it. Default none. */
    readonly stopText?: string;
    readonly tools: readonly ToolDefinition[];
    readonly turnIndex: number;
    readonly finish: "stop" | "length";
    /** True if the prompt ended inside an open reasoning block. */
    readonly reasoningOpened: boolean;
  }): Reading;
  /**
   * Reads a turn that an engine returns as a message. Absent: `read()` reads its text, and its calls are ignored,
   * because the agent shows no tools. The positions of its form are those of `writeChatTurn()`.
   */
  readMessage?(turn: {
    readonly content: string;
    /** `""` if the engine shows none. */
    readonly reasoning: string;
    readonly toolCalls: readonly ChatToolCall[];
    readonly tools: readonly ToolDefinition[];
    readonly turnIndex: number;
    readonly finish: "stop" | "length";
  }): Reading;
  /** Converts the observations of one turn to messages. */
  observe(observed: readonly Observed[]): readonly Message[];
}
