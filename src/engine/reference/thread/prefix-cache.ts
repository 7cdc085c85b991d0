import { assertInvariant } from "../../../errors.ts";
import { BLOCK_POSITIONS } from "../kernels/key-value-block.ts";

/** A block of computed positions. Its path from the root has the ids of all blocks before it. */
export interface CacheNode {
  readonly parent: CacheNode | undefined;
  /** The block's own ids. */
  readonly key: string;
  /** The block with the keys and values, or -1 for the root, which has none. */
  readonly block: number;
  /** Number of blocks from the start of the sequence, including this one. */
  readonly depth: number;
  readonly children: Map<string, CacheNode>;
  /** Number of active sequences that pass through this node. */
  referenceCount: number;
}

/**
 * A tree of computed blocks by prefix, so that sequences share a common prefix: the samples of a
 * group their prompt, and the turns of an episode all turns before.
 *
 * Blocks that no active sequence references are kept until their memory is needed. The longest
 * unused are evicted first.
 *
 * Invariant: each block is either free, in the tree, or taken by a caller.
 */
export class PrefixCache {
  readonly root: CacheNode = {
    parent: undefined,
    key: "",
    block: -1,
    depth: 0,
    children: new Map(),
    referenceCount: 0,
  };
  readonly #free: number[];
  /** Nodes without references and children, the longest unused first. */
  readonly #idleLeaves = new Set<CacheNode>();
  /** Number of nodes without references. */
  #idleCount = 0;
  /** The eviction cursor: the parent of the last evicted block. */
  #evictionCursor: CacheNode | undefined;

  constructor(blockCount: number) {
    this.#free = Array.from({ length: blockCount }, (_, index) => blockCount - 1 - index);
  }

  /** Number of blocks that `takeBlock()` can return. */
  get availableCount(): number {
    return this.#free.length + this.#idleCount;
  }

  /** Returns the child of a node with the ids from `start` on, or `undefined`. */
  find(node: CacheNode, ids: Int32Array, start: number): CacheNode | undefined {
    return node.children.get(blockKey(ids, start));
  }

  /** Adds a reference to a node and all nodes before it. */
  retain(node: CacheNode): void {
    for (const each of lineage(node)) this.#addReference(each);
  }

  /** Removes the reference of a `retain()`, which `append()` and `descend()` may have moved. */
  release(node: CacheNode): void {
    for (const each of lineage(node)) this.#removeReference(each);
  }

  /** Moves a reference from a node to one of its children. */
  descend(child: CacheNode): void {
    this.#addReference(child);
  }

  /**
   * Adds a computed block after a referenced node, and moves the reference to it. If the tree
   * already has these ids, the block becomes free and the existing node is used.
   */
  append(
    parent: CacheNode,
    { ids, start, block }: { ids: Int32Array; start: number; block: number },
  ): CacheNode {
    assertInvariant(parent.referenceCount > 0, "a block is appended to a node without references");
    const key = blockKey(ids, start);
    const known = parent.children.get(key);
    if (known !== undefined) {
      this.returnBlock(block);
      this.descend(known);
      return known;
    }
    const { depth } = parent;
    const node = { parent, key, block, depth: depth + 1, children: new Map(), referenceCount: 1 };
    parent.children.set(key, node);
    return node;
  }

  /** Returns a block to compute into, or `undefined` if all are in use. */
  takeBlock(): number | undefined {
    return this.#free.pop() ?? this.#evict();
  }

  /** Frees a block that was taken and is not in the tree. */
  returnBlock(block: number): void {
    this.#free.push(block);
  }

  /** Evicts the last block of the sequence that is unused for the longest time. */
  #evict(): number | undefined {
    const resumed = this.#evictionCursor;
    const [longestUnused] = this.#idleLeaves;
    const node = resumed !== undefined && this.#idleLeaves.has(resumed) ? resumed : longestUnused;
    if (node === undefined) return undefined;
    const { parent } = node;
    assertInvariant(parent !== undefined, "the root is never evicted");
    this.#idleLeaves.delete(node);
    this.#idleCount--;
    parent.children.delete(node.key);
    if (this.#isIdleLeaf(parent)) this.#idleLeaves.add(parent);
    this.#evictionCursor = parent;
    return node.block;
  }

  #isIdleLeaf(node: CacheNode): boolean {
    return node !== this.root && node.referenceCount === 0 && node.children.size === 0;
  }

  #addReference(node: CacheNode): void {
    node.referenceCount++;
    if (node.referenceCount > 1 || node === this.root) return;
    this.#idleCount--;
    this.#idleLeaves.delete(node);
  }

  #removeReference(node: CacheNode): void {
    assertInvariant(node.referenceCount > 0, "a node without references is released");
    node.referenceCount--;
    if (node.referenceCount > 0 || node === this.root) return;
    this.#idleCount++;
    if (this.#isIdleLeaf(node)) this.#idleLeaves.add(node);
  }
}

/** Yields a node and all nodes before it. */
function* lineage(node: CacheNode): Generator<CacheNode> {
  for (let at: CacheNode | undefined = node; at !== undefined; at = at.parent) yield at;
}

/** Returns the block's ids as a text of two UTF-16 units per id, a map key that is fast to make. */
export function blockKey(ids: Int32Array, start: number): string {
  const { buffer, byteOffset } = ids;
  return String.fromCharCode(
    ...new Uint16Array(buffer, byteOffset + start * 4, BLOCK_POSITIONS * 2),
  );
}
