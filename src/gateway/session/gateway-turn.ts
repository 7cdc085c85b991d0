import type { DialectName } from "../dialects/dialect.ts";
import type { ClientAssistant, ClientMessage, ReplyFinish } from "../conversation.ts";
import type { SamplingConstraint, SamplingParameters } from "../../engine/engine.ts";
import type { ShownTurn } from "../turn/prompt-builder.ts";
import type { PlacementNote, SentTurn } from "../tree/turn-node.ts";

/** A turn that a session sampled, with everything that is kept of it. JSON-able. */
export interface GatewayTurn extends ShownTurn {
  readonly replyId: string;
  readonly dialect: DialectName;
  /** The model's name as the client spelled it. */
  readonly model: string;
  /** What the client sent since the turn before. */
  readonly environment: readonly ClientMessage[];
  /** Whether the first message is not carried over to a reply that continues this one by its id. */
  readonly hasInstructions: boolean;
  readonly sampling: SamplingParameters;
  /** What the engine held the turn to; absent where it was sampled freely. */
  readonly constraint?: SamplingConstraint["type"];
  readonly finish: ReplyFinish;
  readonly notes: readonly PlacementNote[];
  readonly attemptCounts: Readonly<Record<string, number>>;
  readonly isFormatError: boolean;
  /** Names that the client gave its conversation; never an identity. */
  readonly labels: Readonly<Record<string, string>>;
  readonly promptTokenCount: number;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly engineMs: number;
}

/** A sampled turn as a client would send it back that changes nothing. */
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
