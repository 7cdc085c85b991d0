import type { DialectName } from "../dialects/dialect.ts";
import type { ClientAssistant, ClientMessage, ReplyFinish } from "../conversation.ts";
import type { SamplingConstraint, SamplingParameters } from "../../engine/engine.ts";
import type { ShownTurn } from "../turn/prompt-builder.ts";
import type { PlacementNote, SentTurn } from "../tree/turn-node.ts";
import type { PromptNote } from "../turn/lost-parts.ts";

/** A sampled turn of a session, as it is kept in memory and in the journal. JSON-able. */
export interface GatewayTurn extends ShownTurn {
  readonly replyId: string;
  readonly dialect: DialectName;
  /** The model's name as the client spelled it. */
  readonly model: string;
  /** The client's messages since the previous turn. */
  readonly environment: readonly ClientMessage[];
  /**
   * True if the first message comes from `instructions`, which a continuation by reply id does not
   * inherit.
   */
  readonly hasInstructions: boolean;
  readonly sampling: SamplingParameters;
  /** The constraint that the engine enforced. Absent if the turn was sampled freely. */
  readonly constraint?: SamplingConstraint["type"];
  readonly finish: ReplyFinish;
  readonly notes: readonly (PlacementNote | PromptNote)[];
  readonly attemptCounts: Readonly<Record<string, number>>;
  readonly isFormatError: boolean;
  /** Names that the client gave its conversation. Two sessions may have the same names. */
  readonly labels: Readonly<Record<string, string>>;
  readonly promptTokenCount: number;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly engineMs: number;
}

/** Returns a sampled turn as a client would send it back unchanged. */
export function sentBack({ text, calls, marks, parts }: SentTurn): ClientAssistant {
  const reasoning = parts
    .flatMap((part) => (part.type === "reasoning" ? [part.text] : []))
    .join("");
  return {
    role: "assistant",
    content: text,
    ...(reasoning !== "" && { reasoning }),
    calls: calls.map(({ id, name, argumentsText }) => ({ id, name, argumentsText })),
    marks: [...marks],
  };
}
