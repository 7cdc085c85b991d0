import type { LlamaSequence } from "./llama-library.ts";

/** A sequence, held for one call. */
export interface SequenceLease {
  readonly sequence: LlamaSequence;
  /** A call before failed in it: it has to be cleared. */
  readonly isSpoiled: boolean;
  /** Gives it back, once, and says whether what it holds cannot be relied on. */
  readonly release: (outcome: { spoiled: boolean }) => void;
}

/** What a sequence is wanted for. */
export interface SequenceWish {
  readonly sessionId: string;
  /** The ids that will be computed. */
  readonly ids: readonly number[];
}

/** Hands out sequences, one call each. */
export interface SequenceSource {
  /**
   * Waits for a free sequence, in order of arrival.
   *
   * @throws the signal's reason where the signal is aborted first.
   */
  lease(wish: SequenceWish, options: { signal: AbortSignal }): Promise<SequenceLease>;
}

interface Slot {
  readonly sequence: LlamaSequence;
  isFree: boolean;
  isSpoiled: boolean;
  sessionId: string | undefined;
  /** Larger is later. */
  lastUse: number;
}

interface Waiting {
  readonly wish: SequenceWish;
  readonly take: (slot: Slot) => void;
}

/** Shares sequences among sessions so that a session finds again what was computed for it. */
export function createSequencePool(sequences: readonly LlamaSequence[]): SequenceSource {
  const slots: readonly Slot[] = sequences.map((sequence) => ({
    sequence,
    isFree: true,
    isSpoiled: false,
    sessionId: undefined,
    lastUse: 0,
  }));
  const queue: Waiting[] = [];
  let useCount = 0;

  function hold(slot: Slot, sessionId: string): void {
    slot.isFree = false;
    slot.sessionId = sessionId;
    slot.lastUse = ++useCount;
  }

  function toLease(slot: Slot): SequenceLease {
    return {
      sequence: slot.sequence,
      isSpoiled: slot.isSpoiled,
      release({ spoiled }) {
        slot.isSpoiled = spoiled;
        const next = queue.shift();
        if (next === undefined) slot.isFree = true;
        else next.take(slot);
      },
    };
  }

  return {
    lease(wish, { signal }) {
      const free = slots.filter(({ isFree }) => isFree);
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error);
        const best = pickSlot(free, wish);
        if (best !== undefined) {
          hold(best, wish.sessionId);
          return resolve(toLease(best));
        }
        const waiting: Waiting = {
          wish,
          take(slot) {
            signal.removeEventListener("abort", onAbort);
            hold(slot, wish.sessionId);
            resolve(toLease(slot));
          },
        };
        const onAbort = (): void => {
          queue.splice(queue.indexOf(waiting), 1);
          reject(signal.reason as Error);
        };
        signal.addEventListener("abort", onAbort, { once: true });
        queue.push(waiting);
      });
    },
  };
}

/**
 * The session's own sequence where that is free; else the one that gains most: what it shares with
 * the ids need not be computed, what it holds besides is lost. Of equals the one longest unused.
 */
function pickSlot(free: readonly Slot[], { sessionId, ids }: SequenceWish): Slot | undefined {
  const own = free.find((slot) => slot.sessionId === sessionId && !slot.isSpoiled);
  if (own !== undefined) return own;
  const ranked = free.map((slot) => ({ slot, gain: gainOf(slot, ids) }));
  ranked.sort((a, b) => b.gain - a.gain || a.slot.lastUse - b.slot.lastUse);
  return ranked[0]?.slot;
}

function gainOf({ sequence, isSpoiled }: Slot, ids: readonly number[]): number {
  if (isSpoiled) return 0;
  const held = sequence.contextTokens;
  const different = held.findIndex((id, index) => id !== ids[index]);
  const shared = different === -1 ? held.length : different;
  return shared - (held.length - shared);
}
