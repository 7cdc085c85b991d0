import { sentArguments } from "../call-form.ts";
import type { ReplyPart } from "../conversation.ts";
import { jsonKey } from "./json-key.ts";

/** Reasons why a request does not continue a turn. */
export const rootCauses = [
  /** The session's first request. */
  "first",
  /**
   * No part of the request was sampled here, for example in a sub-agent or a second conversation.
   */
  "new-conversation",
  /** The prompt is that of an earlier root: an unmarked retry, or a second attempt. */
  "repeated-prompt",
  /** The conversation is continued with other tools, which templates print before it. */
  "tools-changed",
  /** A sampled turn, or a message before it, was changed. */
  "history-edited",
  /** A turn that was sampled here follows another history, usually after compaction. */
  "moved-turn",
  /** The conversation has an assistant turn that was not sampled here. */
  "foreign-assistant",
  /** The request ends with a sampled turn and adds no answer. */
  "no-environment",
  /** The chat template cannot render the new messages after the turn. */
  "delta-unsupported",
  /** The chat template renders the earlier turns differently now. */
  "rewritten-by-template",
] as const;

/** The reason why a request starts a root. */
export type RootCause = (typeof rootCauses)[number];

/** Anomalies that can occur when a request is placed. */
const placementNotes = [
  /** The text beside the calls differs from the sampled one. */
  "text-differs",
  /** The results are in another order than the calls, or after other messages. */
  "results-reordered",
  /** A call has no result before the next turn. */
  "call-without-result",
  /** No call has the id of a result. */
  "result-without-call",
  /** A call has a second result, which replaces the first one or follows the next turn. */
  "second-result",
  /** A turn with calls came back with other ids. */
  "ids-differ",
  /** Several turns matched; the newest was chosen. */
  "ambiguous",
  /** The client edited a turn after the one that it continues. */
  "edited-later",
] as const;

/** An anomaly that was found when a request was placed. */
export type PlacementNote = (typeof placementNotes)[number];

/** A sampled turn as the client received it, with the data to recognise it. */
export interface SentTurn {
  readonly parts: readonly ReplyPart[];
  readonly text: string;
  readonly calls: readonly {
    readonly id: string;
    readonly name: string;
    readonly argumentsText: string;
    /** The key of the arguments as the client received them. See `jsonKey()`. */
    readonly key: string;
  }[];
  /** Ids and signatures that this gateway created for its parts. */
  readonly marks: ReadonlySet<string>;
}

/** Prepares a sampled turn for comparison. */
export function toSentTurn(parts: readonly ReplyPart[]): SentTurn {
  const calls = parts.flatMap((part) => {
    if (part.type !== "call") return [];
    const { callId: id, name, text: argumentsText, form } = part;
    return [{ id, name, argumentsText, key: jsonKey(sentArguments(form, argumentsText)) }];
  });
  const marks = parts.flatMap((part) =>
    part.type === "reasoning" ? [part.id, part.signature] : [part.id],
  );
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  return { parts, text, calls, marks: new Set(marks.filter((mark) => mark !== "")) };
}

/** A sampled turn in the tree. `Record` is its data, such as ids and logprobs. */
export interface TurnNode<Record> {
  /** 0-based index in sampling order. */
  readonly index: number;
  /** The turn that this turn continues. Absent for a root. */
  readonly parent: TurnNode<Record> | undefined;
  readonly children: readonly TurnNode<Record>[];
  /** The reason why the turn is a root. Absent for any other turn. */
  readonly cause: RootCause | undefined;
  /** A key that turns share if they continue the same turn (or none) and their requests were equal. */
  readonly place: string;
  /** A number that stands for the tools. Absent for a turn that continues another. */
  readonly tools: number | undefined;
  readonly turn: SentTurn;
  readonly record: Record;
  /** True if the client has received the complete turn, as far as is known. */
  readonly isDelivered: boolean;
}
