import type { ClientMessage } from "../conversation.ts";

/** Maximum number of remembered requests. */
const keptRequests = 8;

/** An earlier request that a new one repeats and continues with an assistant turn. */
interface RepeatedRequest<Place> {
  readonly place: Place;
  /** Number of messages of the earlier request. */
  readonly length: number;
}

interface Kept<Place> {
  readonly messages: readonly ClientMessage[];
  readonly tools: number;
  readonly place: Place;
}

/**
 * Remembers a session's newest requests with their positions in the tree. Most requests repeat one
 * of them exactly and add a turn with its answers, so that only the addition must be placed.
 */
export class RecentRequests<Place> {
  /** Least recent first. */
  readonly #kept: Kept<Place>[] = [];

  /** Finds the longest remembered request that the messages repeat. */
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
   * Remembers a request. Messages that equal earlier ones are shared with them, so that a history
   * is not in memory several times.
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

/** True if two messages are exactly equal. */
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
