import type { LlamaSequence } from "./llama-library.ts";

/** A sequence that one call uses. */
export interface SequenceLease {
  readonly sequence: LlamaSequence;
  /** True if an earlier call failed in the sequence, so that it must be cleared. */
  readonly isSpoiled: boolean;
  /** Returns the sequence to the pool, once. `spoiled` marks its contents as unreliable. */
  readonly release: (outcome: { spoiled: boolean }) => void;
}

/** A request for a sequence. */
export interface SequenceRequest {
  readonly sessionId: string;
  /** The ids that the call will compute. */
  readonly ids: readonly number[];
}

/** Lends sequences, each to one call at a time. */
export interface SequenceSource {
  /**
   * Waits for a free sequence, in order of arrival.
   *
   * @throws the signal's reason if the signal aborts first.
   */
  lease(request: SequenceRequest, options: { signal: AbortSignal }): Promise<SequenceLease>;
}

interface Slot {
  readonly sequence: LlamaSequence;
  isFree: boolean;
  isSpoiled: boolean;
  sessionId: string | undefined;
  /** The number of the last use. A later use has a larger number. */
  lastUse: number;
}

interface Waiting {
  readonly request: SequenceRequest;
  readonly take: (slot: Slot) => void;
}

/**
 * Shares sequences among sessions, so that a session gets the sequence that has its ids computed.
 */
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

  function occupy(slot: Slot, sessionId: string): void {
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
    lease(request, { signal }) {
      const free = slots.filter(({ isFree }) => isFree);
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error);
        const best = pickSlot(free, request);
        if (best !== undefined) {
          occupy(best, request.sessionId);
          return resolve(toLease(best));
        }
        const waiting: Waiting = {
          request,
          take(slot) {
            signal.removeEventListener("abort", onAbort);
            occupy(slot, request.sessionId);
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
 * Selects the session's own sequence if it is free, otherwise the one with the largest gain: ids shared with the
 * request, which need not be computed, minus other computed ids, which are lost. Of sequences with the same gain,
 * selects the one that was unused for the longest time.
 */
function pickSlot(free: readonly Slot[], { sessionId, ids }: SequenceRequest): Slot | undefined {
  const own = free.find((slot) => slot.sessionId === sessionId && !slot.isSpoiled);
  if (own !== undefined) return own;
  const ranked = free.map((slot) => ({ slot, gain: gainOf(slot, ids) }));
  ranked.sort((a, b) => b.gain - a.gain || a.slot.lastUse - b.slot.lastUse);
  return ranked[0]?.slot;
}

function gainOf({ sequence, isSpoiled }: Slot, ids: readonly number[]): number {
  if (isSpoiled) return 0;
  const computed = sequence.contextTokens;
  const difference = computed.findIndex((id, index) => id !== ids[index]);
  const shared = difference === -1 ? computed.length : difference;
  return shared - (computed.length - shared);
}
