/** The smallest buffer that a pool keeps, in bytes. Sizes are rounded up to a power of two. */
const smallest = 8 * 1024;

/** A pool of buffers outside the heap. */
export class BytePool {
  readonly #largest: number;
  readonly #mostKept: number;
  /** Returned buffers by size. */
  readonly #kept = new Map<number, ArrayBuffer[]>();
  #keptSize = 0;
  /** Buffers that are in use and can be returned. */
  readonly #lent = new WeakSet<ArrayBufferLike>();

  /** @param limits - The largest buffer that is kept, and the most bytes that are kept for reuse. */
  constructor(limits: { readonly largest: number; readonly mostKept: number }) {
    this.#largest = limits.largest;
    this.#mostKept = limits.mostKept;
  }

  /** See `acquireBytes()`. */
  acquire(size: number): Buffer {
    if (size < smallest || size > this.#largest) return Buffer.allocUnsafe(size);
    const room = roomFor(size);
    const found = this.#kept.get(room)?.pop();
    if (found !== undefined) this.#keptSize -= room;
    const buffer = found ?? Buffer.allocUnsafeSlow(room).buffer;
    this.#lent.add(buffer);
    return Buffer.from(buffer, 0, size);
  }

  /** See `releaseBytes()`. */
  release({ buffer }: Uint8Array): void {
    if (!this.#lent.delete(buffer) || this.#keptSize + buffer.byteLength > this.#mostKept) return;
    this.#keptSize += buffer.byteLength;
    const others = this.#kept.get(buffer.byteLength);
    if (others === undefined) this.#kept.set(buffer.byteLength, [buffer as ArrayBuffer]);
    else others.push(buffer as ArrayBuffer);
  }
}

const pool = new BytePool({ largest: 4 * 1024 * 1024, mostKept: 64 * 1024 * 1024 });

/**
 * Returns a buffer for short use, such as a request's body; return it with `releaseBytes()`. Each turn sends a
 * long prompt, and new memory outside the heap makes the garbage collector scan the complete heap about once a
 * second, since it counts that memory.
 *
 * @returns `size` bytes with arbitrary content.
 */
export function acquireBytes(size: number): Buffer {
  return pool.acquire(size);
}

/**
 * Returns a buffer, or a part of it, to the pool. Do not use it afterwards. Bytes that did not come
 * from the pool, or were returned before, are ignored. A buffer that is never returned is
 * garbage-collected as usual.
 */
export function releaseBytes(bytes: Uint8Array): void {
  pool.release(bytes);
}

function roomFor(size: number): number {
  return 2 ** Math.ceil(Math.log2(size));
}
