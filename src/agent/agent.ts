import type { Action } from "../environment/environment.ts";
import type { AssistantMessage, Message, ToolDefinition } from "../message.ts";
import type { AttemptStatus } from "../parser/tool-call-parser.ts";
import type { TurnForm } from "./turn-form.ts";

/** What the agent shows the policy before the first turn. */
export interface Opening {
  readonly messages: readonly Message[];
  /** The tools that the chat template prints; empty where the agent describes tools in its own text. */
  readonly tools: readonly ToolDefinition[];
}

/** One thing to do about a turn, in order. */
export type Intent =
  /** Perform the action; a call's observation goes back under `callId`. */
  | {
      readonly type: "act";
      readonly callId: string;
      readonly action: Action;
      /** The call was malformed and is mended; absent in the ordinary case. */
      readonly repaired?: true;
    }
  /** Do nothing in the environment; tell the policy why under `callId`. */
  | {
      readonly type: "refuse";
      readonly callId: string;
      readonly name: string;
      readonly status: AttemptStatus | "extra-call";
      readonly observation: string;
    }
  /** Do nothing and tell nobody; the episode records that the call was made. */
  | { readonly type: "ignore"; readonly callId: string; readonly name: string };

/** What the agent makes of a sampled turn. */
export interface Reading {
  /** The turn as a message, for tools, users and people. */
  readonly message: AssistantMessage;
  /** The reasoning that was cut off before the message was read; `""` where there was none. */
  readonly reasoning: string;
  /** At least one that is not ignored. */
  readonly intents: readonly Intent[];
  /** How often each status occurred among the turn's attempts. */
  readonly attemptCounts: Readonly<Partial<Record<AttemptStatus, number>>>;
  /** Places are those in the text with its stop. Absent where turns have no markup. */
  readonly form?: TurnForm;
}

/** An observation on its way back to the policy. */
export interface Observed {
  readonly callId: string;
  readonly name: string;
  readonly from: "tool" | "user";
  readonly text: string;
}

/** The strategy around the policy. Stateless: all state is in the conversation. */
export interface Agent {
  /** Such as `tool-calling`. */
  readonly strategy: string;
  open(start: {
    readonly policyText: string;
    readonly tools: readonly ToolDefinition[];
    readonly firstUserText: string;
    /** The episode's own seed. */
    readonly seed: number;
    /** The task's place in its split. */
    readonly taskIndex: number;
  }): Opening;
  /** Reads what the policy sampled. Total: whatever was sampled, there is a reading. */
  read(turn: {
    readonly text: string;
    /** The literal of the stop id that closed the text and is not in it. Default none. */
    readonly stopText?: string;
    readonly tools: readonly ToolDefinition[];
    readonly turnIndex: number;
    readonly finish: "stop" | "length";
    /** Whether the prompt ended inside an opened reasoning block. */
    readonly reasoningOpened: boolean;
  }): Reading;
  /** The messages that carry the observations of one turn. */
  observe(observed: readonly Observed[]): readonly Message[];
}
