import type { ClientMessage } from "../conversation.ts";

/** So many requests are kept. */
const keptRequests = 8;

/** A request that begins as an earlier one did, and goes on with a turn of an assistant's. */
interface RepeatedRequest<Place> {
  readonly place: Place;
  /** How many messages the earlier one had. */
  readonly length: number;
}

interface Kept<Place> {
  readonly messages: readonly ClientMessage[];
  readonly tools: number;
  readonly place: Place;
}

/**
 * The newest requests of a session, with the places that were found for them. Most requests repeat one
 * of them to the letter and add a turn with its answers: only what is added has to be placed then.
 */
export class RecentRequests<Place> {
  /** The least recent first. */
  readonly #kept: Kept<Place>[] = [];

  /** The longest of them that a request repeats. */
  find(messages: readonly ClientMessage[], tools: number): RepeatedRequest<Place> | undefined {
    let best: Kept<Place> | undefined;
    for (const kept of this.#kept) {
      const { length } = kept.messages;
      const isLonger = length > (best?.messages.length ?? 0);
      if (!isLonger || kept.tools !== tools || messages[length]?.role !== "assistant") continue;
      if (kept.messages.every((message, index) => isSame(message, messages[index]!))) best = kept;
    }
    return best && { place: best.place, length: best.messages.length };
  }

  /**
   * Keeps a request. Of messages that were kept already the earlier ones stay: they are in memory for
   * other reasons, and a session's history would be there many times otherwise.
   */
  keep(messages: readonly ClientMessage[], tools: number, place: Place): void {
    let shared: Kept<Place> | undefined;
    for (const kept of this.#kept) {
      const { length } = kept.messages;
      if (length <= (shared?.messages.length ?? 0) || length > messages.length) continue;
      if (kept.messages.every((message, index) => isSame(message, messages[index]!))) shared = kept;
    }
    if (shared !== undefined) this.#kept.splice(this.#kept.indexOf(shared), 1);
    else if (this.#kept.length >= keptRequests) this.#kept.shift();
    const before = shared?.messages ?? [];
    const all = [...before, ...messages.slice(before.length)];
    this.#kept.push({ messages: all, tools, place });
  }
}

/** Whether two messages are spelled alike, to the letter. */
function isSame(left: ClientMessage, right: ClientMessage): boolean {
  if (left === right) return true;
  if (left.content !== right.content) return false;
  if (left.role === "tool") return right.role === "tool" && left.callId === right.callId;
  if (left.role !== "assistant") return left.role === right.role;
  return (
    right.role === "assistant" &&
    left.reasoning === right.reasoning &&
    left.calls.length === right.calls.length &&
    left.marks.length === right.marks.length &&
    left.marks.every((mark, index) => mark === right.marks[index]) &&
    left.calls.every(({ id, name, argumentsText }, index) => {
      const other = right.calls[index]!;
      return id === other.id && name === other.name && argumentsText === other.argumentsText;
    })
  );
}
