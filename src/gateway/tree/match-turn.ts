import type { ClientAssistant } from "../conversation.ts";
import { jsonKey } from "./json-key.ts";
import type { PlacementNote, SentTurn } from "./turn-node.ts";

/** The strictness of comparing a returned turn with the sampled one. */
export type Strictness =
  /** Text beside calls may differ, because some clients add or drop it. */
  | "calls"
  /** All text must be equal. */
  | "strict";

/** The result of comparing an assistant message with a sampled turn. */
type TurnMatch =
  | {
      readonly type: "same";
      /** True if an id of this gateway came back with the message. */
      readonly byId: boolean;
      readonly notes: readonly PlacementNote[];
    }
  /** An id of this gateway came back, but the client changed the content. */
  | { readonly type: "edited" }
  | { readonly type: "other" };

/**
 * Compares an assistant message with a sampled turn. The called functions and their argument values
 * decide. Equal ids alone are not enough.
 */
export function matchTurn(
  message: ClientAssistant,
  turn: SentTurn,
  strictness: Strictness,
): TurnMatch {
  const match = turn.calls.length > 0 ? matchCalls(message, turn) : matchText(message, turn);
  if (match.type !== "same" || isSameText(message, turn)) return match;
  if (strictness === "strict") return match.byId ? { type: "edited" } : { type: "other" };
  return { ...match, notes: [...match.notes, "text-differs"] };
}

function isSameText(message: ClientAssistant, { text }: SentTurn): boolean {
  return message.content === text;
}

function matchCalls(message: ClientAssistant, turn: SentTurn): TurnMatch {
  const { calls } = message;
  if (calls.length !== turn.calls.length) {
    return calls.some(({ id }) => turn.calls.some((sent) => sent.id === id))
      ? { type: "edited" }
      : { type: "other" };
  }
  const sentById = new Map(turn.calls.map((sent) => [sent.id, sent]));
  const ids = new Set(calls.map(({ id }) => id));
  const hasAllIds = ids.size === calls.length && calls.every(({ id }) => sentById.has(id));
  const isSame = calls.every((call, index) => {
    const sent = hasAllIds ? sentById.get(call.id)! : turn.calls[index]!;
    return call.name === sent.name && isSameValue(call.argumentsText, sent);
  });
  if (isSame) return { type: "same", byId: hasAllIds, notes: hasAllIds ? [] : ["ids-differ"] };
  return hasAllIds ? { type: "edited" } : { type: "other" };
}

/** The text in which the client last wrote a call's arguments. Clients usually repeat it with each request. */
const spellings = new WeakMap<SentTurn["calls"][number], string>();

function isSameValue(argumentsText: string, sent: SentTurn["calls"][number]): boolean {
  if (argumentsText === sent.argumentsText || argumentsText === spellings.get(sent)) return true;
  if (jsonKey(argumentsText) !== sent.key) return false;
  spellings.set(sent, argumentsText);
  return true;
}

function matchText(message: ClientAssistant, turn: SentTurn): TurnMatch {
  const byId = message.marks.some((mark) => turn.marks.has(mark));
  if (message.calls.length > 0) return byId ? { type: "edited" } : { type: "other" };
  if (message.content === turn.text) return { type: "same", byId, notes: [] };
  if (!byId) return { type: "other" };
  // Some clients trim text, drop empty text, or replace it.
  const isTrimmed = message.content.trim() === turn.text.trim();
  const isEmpty = message.content === "" || turn.text === "";
  return isTrimmed || isEmpty ? { type: "same", byId, notes: [] } : { type: "edited" };
}
