import { assertInvariant } from "../../../errors.ts";
import type { Decoder } from "../decoder.ts";
import { BLOCK_POSITIONS } from "../kernels/key-value-block.ts";
import type { CacheNode } from "./prefix-cache.ts";
import { PrefixCache } from "./prefix-cache.ts";
import { Sequence } from "./sequence.ts";
import type { ThreadNews, ThreadReply } from "./thread-message.ts";
import type { TokenGoal } from "./token-goal.ts";

/** How much a step may hold. */
interface BatchLimits {
  /** Sequences in work at once. */
  readonly slotCount: number;
  /** Positions of prompts in one step, at least 16. */
  readonly prefillRowCount: number;
  readonly blockCount: number;
}

/**
 * Keeps a decoder busy with sequences that come and go: each step takes the next position of those
 * that sample, and as many of the prompts' as fit. Sequences that begin alike compute the common part
 * once. When the cache is full, the sequence that came last waits, and is computed again later: its
 * ids stay, and the results are the same to the bit.
 */
export class ContinuousBatch {
  readonly #decoder: Decoder;
  readonly #blockCount: number;
  #cache: PrefixCache;
  readonly #prefillRowCount: number;
  readonly #freeSlots: number[];
  /** In order of arrival, as are those in work. */
  readonly #waiting: Sequence[] = [];
  readonly #inWork: Sequence[] = [];

  constructor(decoder: Decoder, limits: BatchLimits) {
    this.#decoder = decoder;
    this.#blockCount = limits.blockCount;
    this.#cache = new PrefixCache(limits.blockCount);
    this.#prefillRowCount = limits.prefillRowCount;
    this.#freeSlots = Array.from({ length: limits.slotCount }, (_, index) => index);
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#inWork.length === 0;
  }

  add(goal: TokenGoal): void {
    this.#waiting.push(new Sequence(goal, { cache: this.#cache, decoder: this.#decoder }));
  }

  /** Forgets what was computed for sequences that are gone. There is none in work. */
  forget(): void {
    assertInvariant(this.isIdle, "the cache is forgotten while it is in use");
    this.#cache = new PrefixCache(this.#blockCount);
  }

  /** Drops a sequence, wherever it is. */
  abort(key: number): void {
    const waitingIndex = this.#waiting.findIndex(({ goal }) => goal.key === key);
    if (waitingIndex !== -1) this.#waiting.splice(waitingIndex, 1);
    const sequence = this.#inWork.find(({ goal }) => goal.key === key);
    if (sequence !== undefined) this.#dismiss(sequence);
  }

  /** Drops a sequence and returns what it has; undefined where it is not there any more. */
  cutShort(key: number): ThreadReply | undefined {
    const sequence = [...this.#waiting, ...this.#inWork].find(({ goal }) => goal.key === key);
    this.abort(key);
    return sequence?.goal.cutShort?.();
  }

  /** Computes one step and returns what is to be said of it: news, and replies to what it finished. */
  step(): readonly (ThreadReply | ThreadNews)[] {
    this.#admit();
    const planned = this.#plan();
    const messages: (ThreadReply | ThreadNews)[] = [];
    const finished = new Set<Sequence>();
    this.#decoder.forward(
      planned.map(({ sequence, count }) => sequence.toPart(count)),
      (index, row) => {
        const sequence = planned[index]?.sequence;
        assertInvariant(sequence !== undefined, "logits belong to no part");
        if (finished.has(sequence)) return;
        const step = sequence.take(row);
        if (step.type === "append" && step.news !== undefined) messages.push(step.news);
        if (step.type !== "finish") return;
        messages.push(step.reply);
        finished.add(sequence);
      },
    );
    for (const { sequence, count } of planned) sequence.advance(count);
    for (const sequence of finished) this.#dismiss(sequence);
    return messages;
  }

  /**
   * Takes in sequences while there is a slot, and room for all that they bring and a block more for
   * each one in work: a sequence that is sent away soon was computed for nothing.
   */
  #admit(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined) return;
      const slot = this.#freeSlots.pop();
      if (slot === undefined) return;
      next.enter(slot);
      const neededCount = next.pendingBlockCount + this.#inWork.length;
      if (this.#inWork.length > 0 && this.#cache.availableCount < neededCount) {
        this.#freeSlots.push(next.leave());
        return;
      }
      this.#waiting.shift();
      this.#inWork.push(next);
    }
  }

  /** What the step computes: in order of arrival, so that those that come last give way. */
  #plan(): readonly Planned[] {
    const planned: Planned[] = [];
    let prefillRoom = this.#prefillRowCount;
    const shared = new Map<CacheNode, Set<string>>();
    for (let index = 0; index < this.#inWork.length; index++) {
      const sequence = this.#inWork[index]!;
      sequence.attach();
      if (this.#isUnderWay(sequence, shared)) continue;
      const count = nextCount(sequence.pendingCount, prefillRoom);
      if (count === 0 || !this.#reserve(sequence, count)) continue;
      if (sequence.pendingCount > 1) prefillRoom -= count;
      planned.push({ sequence, count });
    }
    assertInvariant(planned.length > 0, "a step has nothing to compute");
    return planned;
  }

  /** Whether the step computes the sequence's next block for another one; if not, notes it. */
  #isUnderWay(sequence: Sequence, shared: Map<CacheNode, Set<string>>): boolean {
    const next = sequence.nextSharedBlock();
    if (next === undefined) return false;
    const keys = shared.get(next.node) ?? new Set();
    if (keys.has(next.key)) return true;
    shared.set(next.node, keys.add(next.key));
    return false;
  }

  /** Makes room by sending away those that came last. False where the sequence itself had to go. */
  #reserve(sequence: Sequence, count: number): boolean {
    while (!sequence.reserve(count)) {
      const last = this.#inWork.at(-1);
      assertInvariant(
        last !== undefined && this.#inWork.length > 1,
        "the cache does not hold one sequence",
      );
      this.#dismiss(last);
      this.#waiting.unshift(last);
      if (last === sequence) return false;
    }
    return true;
  }

  #dismiss(sequence: Sequence): void {
    this.#inWork.splice(this.#inWork.indexOf(sequence), 1);
    this.#freeSlots.push(sequence.leave());
  }
}

interface Planned {
  readonly sequence: Sequence;
  readonly count: number;
}

/** Prompts are cut at whole blocks, so that other sequences can take over what is computed. */
function nextCount(pendingCount: number, prefillRoom: number): number {
  if (pendingCount === 1 || pendingCount <= prefillRoom) return pendingCount;
  return Math.floor(prefillRoom / BLOCK_POSITIONS) * BLOCK_POSITIONS;
}
