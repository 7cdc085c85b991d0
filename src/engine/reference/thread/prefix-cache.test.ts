import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../../../errors.ts";
import type { CacheNode } from "./prefix-cache.ts";
import { PrefixCache } from "./prefix-cache.ts";

/** Blocks of 16 equal ids. */
function toIds(...blocks: readonly number[]): Int32Array {
  return Int32Array.from(blocks.flatMap((id) => Array.from({ length: 16 }, () => id)));
}

/** Computes as many of a sequence's blocks as fit, and keeps a reference to the last. */
function fill(cache: PrefixCache, ids: Int32Array): CacheNode {
  cache.retain(cache.root);
  let node = cache.root;
  for (let start = 0; start < ids.length; start += 16) {
    const known = cache.find(node, ids, start);
    if (known === undefined) {
      const block = cache.takeBlock();
      if (block === undefined) break;
      node = cache.append(node, { ids, start, block });
    } else {
      cache.descend(known);
      node = known;
    }
  }
  return node;
}

/** Returns the first ids of a sequence's cached blocks. */
function known(cache: PrefixCache, ids: Int32Array): number[] {
  const found: number[] = [];
  let node: CacheNode | undefined = cache.root;
  for (let start = 0; start < ids.length; start += 16) {
    node = cache.find(node, ids, start);
    if (node === undefined) break;
    found.push(ids[start] ?? -1);
  }
  return found;
}

describe("PrefixCache", () => {
  test("finds the blocks of sequences with a common prefix", () => {
    const cache = new PrefixCache(8);
    cache.release(fill(cache, toIds(1, 2, 3)));
    expect(known(cache, toIds(1, 2, 4))).toEqual([1, 2]);
    expect(known(cache, toIds(2, 2))).toEqual([]);
    expect(cache.availableCount).toBe(8);
  });

  test("uses one block for sequences that compute the same at once", () => {
    const cache = new PrefixCache(8);
    const ids = toIds(1);
    const blocks = [cache.takeBlock() ?? -1, cache.takeBlock() ?? -1] as const;
    cache.retain(cache.root);
    cache.retain(cache.root);
    const first = cache.append(cache.root, { ids, start: 0, block: blocks[0] });
    const second = cache.append(cache.root, { ids, start: 0, block: blocks[1] });
    expect(second).toBe(first);
    expect(first.referenceCount).toBe(2);
    expect(cache.availableCount).toBe(7);
  });

  test("evicts the ends of the sequences unused for longest, and no referenced block", () => {
    const cache = new PrefixCache(6);
    cache.release(fill(cache, toIds(1, 2, 3)));
    cache.release(fill(cache, toIds(1, 4)));
    const held = fill(cache, toIds(1, 5, 6));
    // Six blocks are in use: 1, 2, 3, 4, 5, 6. Those of 1, 5 and 6 are referenced.
    expect(cache.availableCount).toBe(3);
    expect(cache.takeBlock()).toBeDefined();
    expect(known(cache, toIds(1, 2, 3))).toEqual([1, 2]);
    expect(cache.takeBlock()).toBeDefined();
    expect(known(cache, toIds(1, 2, 3))).toEqual([1]);
    expect(known(cache, toIds(1, 4))).toEqual([1, 4]);
    expect(cache.takeBlock()).toBeDefined();
    expect(cache.takeBlock()).toBeUndefined();
    expect(known(cache, toIds(1, 5, 6))).toEqual([1, 5, 6]);
    cache.release(held);
    expect(cache.availableCount).toBe(3);
  });

  test("counts reused blocks as recently used", () => {
    const cache = new PrefixCache(2);
    cache.release(fill(cache, toIds(1)));
    cache.release(fill(cache, toIds(2)));
    cache.release(fill(cache, toIds(1)));
    cache.takeBlock();
    expect(known(cache, toIds(1))).toEqual([1]);
    expect(known(cache, toIds(2))).toEqual([]);
  });

  test("refuses to release a node without references", () => {
    const cache = new PrefixCache(2);
    const node = fill(cache, toIds(1));
    cache.release(node);
    expect(() => cache.release(node)).toThrow(InvariantError);
  });

  test("keeps track of all blocks", () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ fill: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 5 }) }),
        fc.record({ release: fc.nat(20) }),
      ),
    );
    fc.assert(
      fc.property(steps, (all) => {
        const blockCount = 7;
        const cache = new PrefixCache(blockCount);
        const held: CacheNode[] = [];
        for (const step of all) {
          if ("fill" in step) held.push(fill(cache, toIds(...step.fill)));
          else {
            const [node] = held.splice(step.release % Math.max(1, held.length), 1);
            if (node !== undefined) cache.release(node);
          }
          const heldBlocks = new Set<number>();
          for (const end of held) {
            for (let at = end; at.parent !== undefined; at = at.parent) heldBlocks.add(at.block);
          }
          expect(cache.availableCount).toBe(blockCount - heldBlocks.size);
        }
        for (const node of held) cache.release(node);
        const taken = Array.from({ length: blockCount }, () => cache.takeBlock());
        expect(new Set(taken)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
        expect(cache.takeBlock()).toBeUndefined();
      }),
    );
  });
});
