import { assertInvariant } from "../../../errors.ts";
import type { Decoder } from "../decoder.ts";
import { BLOCK_POSITIONS } from "../kernels/key-value-block.ts";
import type { CacheNode } from "./prefix-cache.ts";
import { PrefixCache } from "./prefix-cache.ts";
import { Sequence } from "./sequence.ts";
import type { TokenMessage, ThreadReply } from "./thread-message.ts";
import type { TokenGoal } from "./token-goal.ts";

/** The capacities of a step. */
interface BatchLimits {
  /** Maximum number of active sequences. */
  readonly slotCount: number;
  /** Maximum number of prompt positions in one step, at least 16. */
  readonly prefillRowCount: number;
  readonly blockCount: number;
}

/**
 * Runs a decoder on sequences that come and go.
 *
 * Each step computes the next position of all sequences that sample, and as many prompt positions as fit. A common
 * prefix of several sequences is computed once. When the cache is full, the newest sequence is removed and computed
 * again later. The ids of the removed sequence are kept, and its results have the same bits.
 */
export class ContinuousBatch {
  readonly #decoder: Decoder;
  readonly #blockCount: number;
  #cache: PrefixCache;
  readonly #prefillRowCount: number;
  readonly #freeSlots: number[];
  /** Waiting sequences, in order of arrival. */
  readonly #waiting: Sequence[] = [];
  /** Active sequences, in order of arrival. */
  readonly #active: Sequence[] = [];

  constructor(decoder: Decoder, limits: BatchLimits) {
    this.#decoder = decoder;
    this.#blockCount = limits.blockCount;
    this.#cache = new PrefixCache(limits.blockCount);
    this.#prefillRowCount = limits.prefillRowCount;
    this.#freeSlots = Array.from({ length: limits.slotCount }, (_, index) => index);
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#active.length === 0;
  }

  add(goal: TokenGoal): void {
    this.#waiting.push(new Sequence(goal, { cache: this.#cache, decoder: this.#decoder }));
  }

  /** Drops all cached blocks. There must be no active sequence. */
  clearCache(): void {
    assertInvariant(this.isIdle, "the cache is cleared while it is in use");
    this.#cache = new PrefixCache(this.#blockCount);
  }

  /** Drops a waiting or active sequence. */
  abort(key: number): void {
    const waitingIndex = this.#waiting.findIndex(({ goal }) => goal.key === key);
    if (waitingIndex !== -1) this.#waiting.splice(waitingIndex, 1);
    const sequence = this.#active.find(({ goal }) => goal.key === key);
    if (sequence !== undefined) this.#remove(sequence);
  }

  /** Drops a sequence and returns its tokens so far, or `undefined` if it has ended already. */
  cutShort(key: number): ThreadReply | undefined {
    const sequence = [...this.#waiting, ...this.#active].find(({ goal }) => goal.key === key);
    this.abort(key);
    return sequence?.goal.cutShort?.();
  }

  /**
   * Computes one step and returns its messages: sampled tokens, and replies of finished sequences.
   */
  step(): readonly (ThreadReply | TokenMessage)[] {
    this.#admit();
    const planned = this.#plan();
    const messages: (ThreadReply | TokenMessage)[] = [];
    const finished = new Set<Sequence>();
    this.#decoder.forward(
      planned.map(({ sequence, count }) => sequence.toPart(count)),
      (index, row) => {
        const sequence = planned[index]?.sequence;
        assertInvariant(sequence !== undefined, "logits belong to no part");
        if (finished.has(sequence)) return;
        const step = sequence.take(row);
        if (step.type === "append" && step.message !== undefined) messages.push(step.message);
        if (step.type !== "finish") return;
        messages.push(step.reply);
        finished.add(sequence);
      },
    );
    for (const { sequence, count } of planned) sequence.advance(count);
    for (const sequence of finished) this.#remove(sequence);
    return messages;
  }

  /**
   * Activates waiting sequences while there is a slot and enough blocks: all blocks of the new
   * sequence, and one more for each active sequence. Otherwise a sequence would soon be removed
   * again.
   */
  #admit(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined) return;
      const slot = this.#freeSlots.pop();
      if (slot === undefined) return;
      next.enter(slot);
      const neededCount = next.pendingBlockCount + this.#active.length;
      if (this.#active.length > 0 && this.#cache.availableCount < neededCount) {
        this.#freeSlots.push(next.leave());
        return;
      }
      this.#waiting.shift();
      this.#active.push(next);
    }
  }

  /**
   * Selects the positions that the step computes, in order of arrival, so that the newest sequences
   * yield.
   */
  #plan(): readonly Planned[] {
    const planned: Planned[] = [];
    let prefillRoom = this.#prefillRowCount;
    const shared = new Map<CacheNode, Set<string>>();
    for (let index = 0; index < this.#active.length; index++) {
      const sequence = this.#active[index]!;
      sequence.attach();
      if (this.#isComputedByAnother(sequence, shared)) continue;
      const count = nextCount(sequence.pendingCount, prefillRoom);
      if (count === 0 || !this.#reserve(sequence, count)) continue;
      if (sequence.pendingCount > 1) prefillRoom -= count;
      planned.push({ sequence, count });
    }
    assertInvariant(planned.length > 0, "a step has nothing to compute");
    return planned;
  }

  /**
   * True if the step computes the sequence's next block for another sequence. Otherwise records that the step computes
   * this block.
   */
  #isComputedByAnother(sequence: Sequence, shared: Map<CacheNode, Set<string>>): boolean {
    const next = sequence.nextSharedBlock();
    if (next === undefined) return false;
    const keys = shared.get(next.node) ?? new Set();
    if (keys.has(next.key)) return true;
    shared.set(next.node, keys.add(next.key));
    return false;
  }

  /** Reserves blocks by removing the newest sequences. Returns false if the sequence itself was removed. */
  #reserve(sequence: Sequence, count: number): boolean {
    while (!sequence.reserve(count)) {
      const last = this.#active.at(-1);
      assertInvariant(
        last !== undefined && this.#active.length > 1,
        "the cache is too small for one sequence",
      );
      this.#remove(last);
      this.#waiting.unshift(last);
      if (last === sequence) return false;
    }
    return true;
  }

  #remove(sequence: Sequence): void {
    this.#active.splice(this.#active.indexOf(sequence), 1);
    this.#freeSlots.push(sequence.leave());
  }
}

interface Planned {
  readonly sequence: Sequence;
  readonly count: number;
}

/**
 * Returns the number of positions to compute. Prompts are split at full blocks, so that other
 * sequences can share the computed blocks.
 */
function nextCount(pendingCount: number, prefillRoom: number): number {
  if (pendingCount === 1 || pendingCount <= prefillRoom) return pendingCount;
  return Math.floor(prefillRoom / BLOCK_POSITIONS) * BLOCK_POSITIONS;
}
