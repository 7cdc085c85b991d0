import { assertInvariant } from "../../../errors.ts";
import type { Decoder } from "../decoder.ts";
import { BLOCK_POSITIONS } from "../kernels/key-value-block.ts";
import type { CacheNode, PrefixCache } from "./prefix-cache.ts";
import { blockKey } from "./prefix-cache.ts";
import type { GoalStep, TokenGoal } from "./token-goal.ts";

/**
 * Ids on their way through the decoder: how many are computed, and which blocks hold them. What it
 * guards: `computedCount` positions lie in the cache's blocks up to `#node` and in own blocks behind.
 */
export class Sequence {
  readonly goal: TokenGoal;
  readonly #cache: PrefixCache;
  readonly #decoder: Decoder;
  readonly #ids: Int32Array;
  #length: number;
  #firstLogit: number;
  #computedCount = 0;
  /** Of the first ids, how many the cache had. */
  #cachedCount = 0;
  /** Where its blocks are listed; undefined while it waits. */
  #slot: number | undefined;
  /** The last full block. */
  #node: CacheNode;
  /** Blocks behind it. */
  #ownBlocks: number[] = [];

  constructor(goal: TokenGoal, { cache, decoder }: { cache: PrefixCache; decoder: Decoder }) {
    this.goal = goal;
    this.#cache = cache;
    this.#decoder = decoder;
    this.#length = goal.ids.length;
    this.#ids = new Int32Array(this.#length + goal.maxNewIds);
    this.#ids.set(goal.ids);
    this.#firstLogit = goal.firstLogit;
    this.#node = cache.root;
  }

  /** Positions that the goal still needs computed. */
  get pendingCount(): number {
    return this.#length - this.goal.uncomputedCount - this.#computedCount;
  }

  /** Blocks that computing them takes, at most. */
  get pendingBlockCount(): number {
    return (
      Math.ceil((this.#computedCount + this.pendingCount) / BLOCK_POSITIONS) - this.#blockCount
    );
  }

  get #blockCount(): number {
    return this.#node.depth + this.#ownBlocks.length;
  }

  /** Starts work in a slot of the decoder. */
  enter(slot: number): void {
    this.#slot = slot;
    this.#cache.hold(this.#node);
    this.attach();
  }

  /** Gives up its slot and its blocks, which it returns to; what the cache holds stays there. */
  leave(): number {
    const slot = this.#slot;
    assertInvariant(slot !== undefined, "a sequence leaves that is in no slot");
    for (const block of this.#ownBlocks) this.#cache.giveBack(block);
    this.#cache.release(this.#node);
    this.#ownBlocks = [];
    this.#node = this.#cache.root;
    this.#computedCount = 0;
    if (this.#isUntouched) this.#cachedCount = 0;
    this.#slot = undefined;
    return slot;
  }

  /** Takes over blocks that are computed already, up to the first id whose logits are needed. */
  attach(): void {
    while (this.#ownBlocks.length === 0 && this.#isBlockAhead()) {
      const child = this.#cache.find(this.#node, this.#ids, this.#computedCount);
      if (child === undefined) return;
      this.#cache.descend(child);
      this.#enterNode(child);
      this.#computedCount += BLOCK_POSITIONS;
      if (this.#isUntouched) this.#cachedCount += BLOCK_POSITIONS;
    }
  }

  /** Whether the goal has seen no logits yet. */
  get #isUntouched(): boolean {
    return this.#firstLogit === this.goal.firstLogit;
  }

  #isBlockAhead(): boolean {
    return this.#computedCount + BLOCK_POSITIONS <= this.#firstLogit;
  }

  #enterNode(node: CacheNode): void {
    assertInvariant(this.#slot !== undefined, "a sequence without a slot has no blocks");
    this.#node = node;
    this.#decoder.setBlock(this.#slot, { index: node.depth - 1, block: node.block });
  }

  /**
   * Names the block that it would compute next, where another sequence could take it over; two that
   * name the same need not both compute it.
   */
  nextSharedBlock(): { node: CacheNode; key: string } | undefined {
    if (this.#ownBlocks.length > 0 || !this.#isBlockAhead()) return undefined;
    return { node: this.#node, key: blockKey(this.#ids, this.#computedCount) };
  }

  /** Takes a block more, where the next so many positions need one. False where there is none. */
  reserve(count: number): boolean {
    const needed = Math.ceil((this.#computedCount + count) / BLOCK_POSITIONS);
    while (this.#blockCount < needed) {
      const block = this.#cache.takeBlock();
      if (block === undefined) return false;
      assertInvariant(this.#slot !== undefined, "a sequence without a slot has no blocks");
      this.#decoder.clearBlock(block);
      this.#decoder.setBlock(this.#slot, { index: this.#blockCount, block });
      this.#ownBlocks.push(block);
    }
    return true;
  }

  /** The next so many positions, for the decoder. */
  toPart(count: number) {
    assertInvariant(this.#slot !== undefined, "a sequence without a slot is not computed");
    const firstPosition = this.#computedCount;
    return {
      slot: this.#slot,
      ids: this.#ids.subarray(firstPosition, firstPosition + count),
      firstPosition,
      firstLogit: Math.min(count, Math.max(0, this.#firstLogit - firstPosition)),
    };
  }

  /** Hands the logits of the next wanted position to the goal. */
  take(row: Parameters<TokenGoal["take"]>[0]): GoalStep {
    const step = this.goal.take(row, this.#firstLogit, { cachedTokenCount: this.#cachedCount });
    this.#firstLogit++;
    if (step.type === "append") this.#ids[this.#length++] = step.id;
    return step;
  }

  /** Notes that so many positions were computed, and shares the blocks that are full. */
  advance(count: number): void {
    this.#computedCount += count;
    const fullCount = Math.floor(this.#computedCount / BLOCK_POSITIONS);
    while (this.#node.depth < fullCount) {
      const block = this.#ownBlocks.shift();
      assertInvariant(block !== undefined, "a full block is missing");
      const start = this.#node.depth * BLOCK_POSITIONS;
      this.#enterNode(this.#cache.append(this.#node, { ids: this.#ids, start, block }));
    }
  }
}
