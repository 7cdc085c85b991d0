import type { Message, ToolDefinition } from "../message.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import type { CapabilityCard } from "./capability/capability-card.ts";

/** A text and its ids. */
export interface RenderedIds {
  readonly ids: readonly number[];
  readonly text: string;
}

/** The ids that the environment adds to the ledger after a sampled turn. */
export interface EnvironmentDelta {
  /** To append with mask 0, directly after the sampled ids. */
  readonly ids: readonly number[];
  /** The template's text from the close of the assistant turn on. */
  readonly text: string;
  /**
   * True if the policy did not close its turn (for example, it reached a length limit), so that `ids` begins with a
   * close that was not sampled.
   */
  readonly closeSynthesised: boolean;
  /**
   * The id that the ledger must drop before appending: a sampled stop id that opens another role than the next one
   * (GLM family). Usually absent.
   */
  readonly droppedStopId?: number;
  /**
   * The sampled stop id if it differs from the template's (`<|endoftext|>` instead of `<|im_end|>`). It stays in
   * the ledger and is given here for counting. Usually absent.
   */
  readonly foreignStopId?: number;
}

/** A sampled turn, the messages before it and the environment's answer. */
export interface TurnToContinue {
  /** All messages before the assistant turn. */
  readonly history: readonly (Message | PyDict)[];
  readonly assistant: Message | PyDict;
  /** All messages of the answer, at least one: parallel tool results, a user line, or both. */
  readonly environment: readonly (Message | PyDict)[];
  readonly tools: readonly ToolDefinition[];
  /** Template variables for this conversation only, in addition to the renderer's own. */
  readonly variables?: PyDict;
  /** The date that the template prints as today in this conversation. Default: the renderer's own. */
  readonly now?: Date;
}

/** A conversation as a template sees it. */
export interface Conversation {
  /** Typed messages, or OpenAI-shaped dictionaries with any further fields. */
  readonly messages: readonly (Message | PyDict)[];
  readonly tools: readonly ToolDefinition[];
  /** True if the text ends with the generation prompt. Default true. */
  readonly addGenerationPrompt?: boolean;
  /** Template variables for this conversation only, in addition to the renderer's own. */
  readonly variables?: PyDict;
  /** The date that the template prints as today in this conversation. Default: the renderer's own. */
  readonly now?: Date;
}

/** A model's chat template and tokenizer: converts messages to ids, and renders the environment delta. */
export interface Renderer {
  readonly card: CapabilityCard;
  readonly codec: TokenCodec;
  /** Ids that end an assistant turn. */
  readonly stopTokenIds: readonly number[];
  /**
   * The date that templates print as today, if it was set for the renderer's lifetime. If absent, it is the time of
   * the renderer's creation, and each run has its own (see `EpisodeSetup.promptTime`).
   */
  readonly now?: Date;
  /** The model's own description of its turn format, for the parsers that use it. */
  readonly responseTemplate?: PyDict;
  /**
   * Returns the first prompt: rendered with the generation prompt, control tokens in untrusted text neutralised,
   * and encoded once.
   *
   * @throws ConversationRefusal if the template refuses the conversation or renders an empty prompt, and HiddenTool
   * if it does not show one of its tools.
   */
  prompt(conversation: Conversation): Promise<RenderedIds>;
  /**
   * Returns the delta of `environment` (all messages of one turn: parallel tool results, a user line, or both)
   * after the last sampled turn. If the card allows a short base, the work grows with the new messages, not with
   * the history. The history is read only if the card requires the full base.
   *
   * @throws RolloutError `internal/delta` if the template cannot render these messages; it never returns a wrong
   * delta.
   * @throws RolloutError `environment/control-token` or `user/control-token` under the guard policy `reject`.
   */
  delta(
    request: TurnToContinue & {
      /** The last id that the policy sampled. */
      readonly lastSampledId: number | undefined;
    },
  ): Promise<EnvironmentDelta>;
  /**
   * Only under the history policy `split`. If the template's rendering of the conversation omits or moves content
   * that the policy saw before, returns the fresh prompt of a new segment, to use instead of `delta()`. Otherwise
   * returns `undefined`, and the segment continues with `delta()`. Different spelling, spacing or token boundaries
   * within the policy's own text do not count.
   *
   * Pass assistant messages in OpenAI's shape for exact results: `reasoning_content` and `tool_calls` apart from
   * `content` are rendered as a server would render them.
   *
   * @throws RolloutError `internal/delta` if the template cannot render the conversation.
   */
  rerender?(request: TurnToContinue): Promise<RenderedIds | undefined>;
}
