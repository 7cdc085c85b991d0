import { assertInvariant } from "../../../errors.ts";
import { BLOCK_POSITIONS } from "../kernels/key-value-block.ts";

/** A block of computed positions, reached by the ids of all blocks before it. */
export interface CacheNode {
  readonly parent: CacheNode | undefined;
  /** The node's own ids. */
  readonly key: string;
  /** Which block holds the keys and values; -1 for the root, which holds none. */
  readonly block: number;
  /** Blocks from the start of the sequence up to here, this one included. */
  readonly depth: number;
  readonly children: Map<string, CacheNode>;
  /** Sequences in work whose ids lead through here. */
  holders: number;
}

/**
 * Computed blocks as a tree of prefixes, so that sequences that begin alike share what was computed
 * for it: the samples of a group their prompt, the turns of an episode all turns before. Blocks that
 * no sequence in work leads through stay until their room is needed, the longest unused first.
 *
 * What it guards: each block is free, in the tree, or with whoever took it, and in one place only.
 */
export class PrefixCache {
  readonly root: CacheNode = {
    parent: undefined,
    key: "",
    block: -1,
    depth: 0,
    children: new Map(),
    holders: 0,
  };
  readonly #free: number[];
  /** Nodes that nobody holds and that have no children, the longest unused first. */
  readonly #idleLeaves = new Set<CacheNode>();
  /** Nodes that nobody holds. */
  #idleCount = 0;
  /** The rest of a sequence whose end was given up last; it goes on there. */
  #giveUpNext: CacheNode | undefined;

  constructor(blockCount: number) {
    this.#free = Array.from({ length: blockCount }, (_, index) => blockCount - 1 - index);
  }

  /** Blocks that `takeBlock()` could give out one after the other. */
  get availableCount(): number {
    return this.#free.length + this.#idleCount;
  }

  /** The node behind another one with the ids from `start` on; undefined where it is not there. */
  find(node: CacheNode, ids: Int32Array, start: number): CacheNode | undefined {
    return node.children.get(blockKey(ids, start));
  }

  /** Holds a node and all before it. */
  hold(node: CacheNode): void {
    for (const each of lineage(node)) this.#addHolder(each);
  }

  /** Takes back a `hold()`, or the holding that `append()` and `descend()` moved. */
  release(node: CacheNode): void {
    for (const each of lineage(node)) this.#removeHolder(each);
  }

  /** Moves the holding of a node to one of its children. */
  descend(child: CacheNode): void {
    this.#addHolder(child);
  }

  /**
   * Puts a computed block behind a node that is held, and moves the holding there. Where the tree has
   * these ids already, the block is given back and the tree's own one stays.
   */
  append(
    parent: CacheNode,
    { ids, start, block }: { ids: Int32Array; start: number; block: number },
  ): CacheNode {
    assertInvariant(parent.holders > 0, "a block is appended to a node that nobody holds");
    const key = blockKey(ids, start);
    const known = parent.children.get(key);
    if (known !== undefined) {
      this.giveBack(block);
      this.descend(known);
      return known;
    }
    const { depth } = parent;
    const node = { parent, key, block, depth: depth + 1, children: new Map(), holders: 1 };
    parent.children.set(key, node);
    return node;
  }

  /** A block to compute into; undefined where all are in use. */
  takeBlock(): number | undefined {
    return this.#free.pop() ?? this.#giveUp();
  }

  /** Takes back a block that was taken and is in no tree. */
  giveBack(block: number): void {
    this.#free.push(block);
  }

  /** Gives up the end of the sequence that was left unused for longest. */
  #giveUp(): number | undefined {
    const resumed = this.#giveUpNext;
    const [longestUnused] = this.#idleLeaves;
    const node = resumed !== undefined && this.#idleLeaves.has(resumed) ? resumed : longestUnused;
    if (node === undefined) return undefined;
    const { parent } = node;
    assertInvariant(parent !== undefined, "the root is never given up");
    this.#idleLeaves.delete(node);
    this.#idleCount--;
    parent.children.delete(node.key);
    if (this.#isIdleLeaf(parent)) this.#idleLeaves.add(parent);
    this.#giveUpNext = parent;
    return node.block;
  }

  #isIdleLeaf(node: CacheNode): boolean {
    return node !== this.root && node.holders === 0 && node.children.size === 0;
  }

  #addHolder(node: CacheNode): void {
    node.holders++;
    if (node.holders > 1 || node === this.root) return;
    this.#idleCount--;
    this.#idleLeaves.delete(node);
  }

  #removeHolder(node: CacheNode): void {
    assertInvariant(node.holders > 0, "a node is released that nobody holds");
    node.holders--;
    if (node.holders > 0 || node === this.root) return;
    this.#idleCount++;
    if (this.#isIdleLeaf(node)) this.#idleLeaves.add(node);
  }
}

/** A node and all before it. */
function* lineage(node: CacheNode): Generator<CacheNode> {
  for (let at: CacheNode | undefined = node; at !== undefined; at = at.parent) yield at;
}

/** The block's ids as a text of two units an id: a map's key that costs little to make. */
export function blockKey(ids: Int32Array, start: number): string {
  const { buffer, byteOffset } = ids;
  return String.fromCharCode(
    ...new Uint16Array(buffer, byteOffset + start * 4, BLOCK_POSITIONS * 2),
  );
}
