/** The smallest and largest buffer that is kept, in bytes. Other sizes are rounded up to a power of two. */
const [smallest, largest] = [8 * 1024, 4 * 1024 * 1024];

/** The most bytes that are kept for reuse. */
const mostKept = 64 * 1024 * 1024;

/** Returned buffers by size. */
const kept = new Map<number, ArrayBuffer[]>();
let keptSize = 0;

/** Buffers that are lent and may be returned. */
const lent = new WeakSet<ArrayBufferLike>();

/**
 * Returns a buffer for short use, such as a request's body; return it with `releaseBytes()`. Each turn sends a
 * long prompt, and new memory outside the heap makes the garbage collector scan the complete heap about once a
 * second, since it counts that memory.
 *
 * @returns `size` bytes with arbitrary content.
 */
export function acquireBytes(size: number): Buffer {
  if (size < smallest || size > largest) return Buffer.allocUnsafe(size);
  const room = roomFor(size);
  const found = kept.get(room)?.pop();
  if (found !== undefined) keptSize -= room;
  const buffer = found ?? Buffer.allocUnsafeSlow(room).buffer;
  lent.add(buffer);
  return Buffer.from(buffer, 0, size);
}

/**
 * Returns lent bytes, or a part of them that stands for all: do not use them afterwards. Bytes that were not lent,
 * or were returned before, are ignored. A buffer that is never returned is garbage-collected as usual.
 */
export function releaseBytes({ buffer }: Uint8Array): void {
  if (!lent.delete(buffer) || keptSize + buffer.byteLength > mostKept) return;
  keptSize += buffer.byteLength;
  const others = kept.get(buffer.byteLength);
  if (others === undefined) kept.set(buffer.byteLength, [buffer as ArrayBuffer]);
  else others.push(buffer as ArrayBuffer);
}

function roomFor(size: number): number {
  return 2 ** Math.ceil(Math.log2(size));
}
