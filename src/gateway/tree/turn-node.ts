import { sentArguments } from "../call-form.ts";
import type { ReplyPart } from "../conversation.ts";
import { jsonKey } from "./json-key.ts";

/** Why a request did not continue a turn. */
export const rootCauses = [
  /** The session's first request. */
  "first",
  /** Nothing of it was sampled here: a sub-agent, a title, a second conversation. */
  "new-conversation",
  /** The prompt of an earlier root again: a retry that was not marked, or a second attempt. */
  "repeated-prompt",
  /** The same conversation with other tools: templates print them in front of it. */
  "tools-changed",
  /** Something before or in a sampled turn is not as it was. */
  "history-edited",
  /** A turn that was sampled here stands behind another history: compaction, as a rule. */
  "moved-turn",
  /** An assistant's turn that was never sampled here. */
  "foreign-assistant",
  /** The request ends with a sampled turn: nothing answers it. */
  "no-environment",
  /** The chat template cannot say behind a turn what the client sends there. */
  "delta-unsupported",
  /** The chat template shows the earlier turns otherwise by now. */
  "rewritten-by-template",
] as const;

/** Why a request begins a conversation of its own. */
export type RootCause = (typeof rootCauses)[number];

/** What was noticed as a request was placed. */
const placementNotes = [
  /** The text beside the calls is not the one that was sent. */
  "text-differs",
  /** The results of the calls came in another order than the calls, or after other messages. */
  "results-reordered",
  /** A call has no result before the next turn. */
  "call-without-result",
  /** No call has the id of a result. */
  "result-without-call",
  /** A turn with calls came back under other ids. */
  "ids-differ",
  /** Several turns fitted, and the newest was taken. */
  "ambiguous",
  /** The client edited a turn further on than the one that it continues. */
  "edited-later",
] as const;

/** Something that was noticed as a request was placed. */
export type PlacementNote = (typeof placementNotes)[number];

/** A sampled turn as the client was sent it, with what it takes to know it again. */
export interface SentTurn {
  readonly parts: readonly ReplyPart[];
  readonly text: string;
  readonly calls: readonly {
    readonly id: string;
    readonly name: string;
    readonly argumentsText: string;
    /** Of the arguments as the client was sent them; see `jsonKey()`. */
    readonly key: string;
  }[];
  /** Ids and signatures that we made up for its parts. */
  readonly marks: ReadonlySet<string>;
}

/** A turn as it was sent, ready to be compared. */
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

/** A sampled turn in the tree. `Record` is what is kept with it: ids and logprobs. */
export interface TurnNode<Record> {
  /** 0-based, in the order in which turns were sampled. */
  readonly index: number;
  /** The turn that it continues; absent for a root. */
  readonly parent: TurnNode<Record> | undefined;
  readonly children: readonly TurnNode<Record>[];
  /** Why it continues nothing; absent where it does. */
  readonly cause: RootCause | undefined;
  readonly turn: SentTurn;
  readonly record: Record;
  /** Whether the client has the turn whole, as far as anybody knows. */
  readonly isDelivered: boolean;
}
