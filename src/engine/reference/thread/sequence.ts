import { assertInvariant } from "../../../errors.ts";
import type { Decoder } from "../decoder.ts";
import { BLOCK_POSITIONS } from "../kernels/key-value-block.ts";
import type { CacheNode, PrefixCache } from "./prefix-cache.ts";
import { blockKey } from "./prefix-cache.ts";
import type { GoalStep, TokenGoal } from "./token-goal.ts";

/**
 * The progress of ids through the decoder: the number of computed positions and their blocks.
 *
 * Invariant: `computedCount` positions are in the cache's blocks up to `#node` and in own blocks
 * after it.
 */
export class Sequence {
  readonly goal: TokenGoal;
  readonly #cache: PrefixCache;
  readonly #decoder: Decoder;
  readonly #ids: Int32Array;
  #length: number;
  #firstLogit: number;
  #computedCount = 0;
  /** Number of leading ids that were in the cache. */
  #cachedCount = 0;
  /** The index of the sequence's table of blocks, or `undefined` while the sequence waits. */
  #slot: number | undefined;
  /** The last full block in the cache. */
  #node: CacheNode;
  /** Blocks after `#node`. */
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

  /** Number of positions that remain to be computed. */
  get pendingCount(): number {
    return this.#length - this.goal.uncomputedCount - this.#computedCount;
  }

  /** Maximum number of blocks that the pending positions take. */
  get pendingBlockCount(): number {
    return (
      Math.ceil((this.#computedCount + this.pendingCount) / BLOCK_POSITIONS) - this.#blockCount
    );
  }

  get #blockCount(): number {
    return this.#node.depth + this.#ownBlocks.length;
  }

  /** Starts the sequence in a slot of the decoder. */
  enter(slot: number): void {
    this.#slot = slot;
    this.#cache.retain(this.#node);
    this.attach();
  }

  /** Releases the sequence's blocks and returns its slot. Blocks in the cache stay there. */
  leave(): number {
    const slot = this.#slot;
    assertInvariant(slot !== undefined, "a sequence without a slot leaves");
    for (const block of this.#ownBlocks) this.#cache.returnBlock(block);
    this.#cache.release(this.#node);
    this.#ownBlocks = [];
    this.#node = this.#cache.root;
    this.#computedCount = 0;
    if (this.#isUnstarted) this.#cachedCount = 0;
    this.#slot = undefined;
    return slot;
  }

  /** Reuses blocks from the cache, up to the first id with requested logits. */
  attach(): void {
    while (this.#ownBlocks.length === 0 && this.#isBlockAhead()) {
      const child = this.#cache.find(this.#node, this.#ids, this.#computedCount);
      if (child === undefined) return;
      this.#cache.descend(child);
      this.#enterNode(child);
      this.#computedCount += BLOCK_POSITIONS;
      if (this.#isUnstarted) this.#cachedCount += BLOCK_POSITIONS;
    }
  }

  /** True before the goal receives its first logits. */
  get #isUnstarted(): boolean {
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
   * Returns the key of the block that the sequence computes next, if other sequences can share the block. Only one of
   * several sequences with the same block needs to compute it.
   */
  nextSharedBlock(): { node: CacheNode; key: string } | undefined {
    if (this.#ownBlocks.length > 0 || !this.#isBlockAhead()) return undefined;
    return { node: this.#node, key: blockKey(this.#ids, this.#computedCount) };
  }

  /** Takes the blocks that the next `count` positions need. Returns false if the cache has no free block. */
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

  /** Returns the next `count` positions for the decoder. */
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

  /** Passes the logits of the next requested position to the goal. */
  take(row: Parameters<TokenGoal["take"]>[0]): GoalStep {
    const slot = this.#slot;
    assertInvariant(slot !== undefined, "a sequence without a slot has no logits");
    const step = this.goal.take(row, this.#firstLogit, {
      cachedTokenCount: this.#cachedCount,
      readRoutes: (range) => this.#decoder.readRoutes(slot, range),
    });
    this.#firstLogit++;
    if (step.type === "append") this.#ids[this.#length++] = step.id;
    return step;
  }

  /** Records that `count` positions were computed, and moves full blocks to the cache. */
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
