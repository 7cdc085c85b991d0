import type { Message, ToolDefinition } from "../message.ts";
import type { PyDict } from "../python/value.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import type { CapabilityCard } from "./capability/capability-card.ts";

/** A text and its ids. */
export interface RenderedIds {
  readonly ids: readonly number[];
  readonly text: string;
}

/** What the environment adds to the ledger after a sampled turn. */
export interface EnvironmentDelta {
  /** To be appended with mask 0, directly after the sampled ids. */
  readonly ids: readonly number[];
  /** The template's text from the close of the assistant turn on. */
  readonly text: string;
  /**
   * True where the policy did not close its turn (it was cut by length, say), so that `ids` begins
   * with a close that nobody sampled.
   */
  readonly closeSynthesised: boolean;
  /**
   * The one id that the ledger must drop before appending, where the sampled stop id opens another
   * role than the one that follows (GLM family). Absent in the ordinary case.
   */
  readonly droppedStopId?: number;
  /**
   * The sampled stop id where it is another one than the template's (`<|endoftext|>` in the place
   * of `<|im_end|>`). It stays in the ledger; here for counting. Absent in the ordinary case.
   */
  readonly foreignStopId?: number;
}

/** A sampled turn, what came before it and what the environment answered. */
export interface TurnToContinue {
  /** All messages before the assistant turn. */
  readonly history: readonly (Message | PyDict)[];
  readonly assistant: Message | PyDict;
  /** All messages of the answer, one at least: parallel tool results, a user line, both. */
  readonly environment: readonly (Message | PyDict)[];
  readonly tools: readonly ToolDefinition[];
  /** Template variables for this conversation only, on top of the renderer's own. */
  readonly variables?: PyDict;
  /** What the template takes for today in this conversation. Default the renderer's own. */
  readonly now?: Date;
}

/** A conversation as a template sees it. */
export interface Conversation {
  /** Typed messages, or OpenAI-shaped dictionaries with any further fields. */
  readonly messages: readonly (Message | PyDict)[];
  readonly tools: readonly ToolDefinition[];
  /** Whether the text ends with what asks the policy for its turn. Default true. */
  readonly addGenerationPrompt?: boolean;
  /** Template variables for this conversation only, on top of the renderer's own. */
  readonly variables?: PyDict;
  /** What the template takes for today in this conversation. Default the renderer's own. */
  readonly now?: Date;
}

/** A model's chat template and tokenizer together: messages to ids, and the environment delta. */
export interface Renderer {
  readonly card: CapabilityCard;
  readonly codec: TokenCodec;
  /** Ids that end an assistant turn. */
  readonly stopTokenIds: readonly number[];
  /**
   * What templates that print the date take for today, where that was chosen for the renderer's whole life.
   * Absent, it is the time of its making, and a run has one of its own (see `EpisodeSetup.promptTime`).
   */
  readonly now?: Date;
  /** How the model says that its turns are written, for the parsers that read by it. */
  readonly responseTemplate?: PyDict;
  /**
   * The first prompt: rendered with the generation prompt, control tokens in untrusted text
   * neutralised, encoded once.
   *
   * @throws ConversationRefusal where the template refuses the conversation, or asks with nothing, and
   *   HiddenTool where it does not show one of its tools.
   */
  prompt(conversation: Conversation): Promise<RenderedIds>;
  /**
   * What `environment` (all messages of one turn: parallel tool results, a user line, both) adds
   * after the last sampled turn. Work grows with the new messages, not with the history, wherever
   * the card says that a short base suffices.
   *
   * The history is read only where the card asks for the full base.
   *
   * @throws RolloutError `internal/delta` where the template cannot express these messages; never a
   *   silently wrong delta.
   * @throws RolloutError `environment/control-token` or `user/control-token` under the guard policy
   *   `reject`.
   */
  delta(
    request: TurnToContinue & {
      /** The last id that the policy sampled. */
      readonly lastSampledId: number | undefined;
    },
  ): Promise<EnvironmentDelta>;
  /**
   * Under the history policy `split` only: whether the template's own rendering of the conversation
   * leaves out or moves something that the policy was shown before. Where it does, the answer is
   * the fresh prompt with which a new segment begins, in the place of `delta()`; where it does not
   * (`undefined`), the segment goes on with `delta()`. Differences of spelling, spacing or token
   * boundaries within what the policy said are none.
   *
   * Assistant messages in OpenAI's shape say more: `reasoning_content` and `tool_calls` apart from
   * `content` are rendered as a server would render them.
   *
   * @throws RolloutError `internal/delta` where the template cannot render the conversation.
   */
  rerender?(request: TurnToContinue): Promise<RenderedIds | undefined>;
}
