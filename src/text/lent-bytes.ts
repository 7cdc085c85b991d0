/** The smallest and the largest room that is kept, in bytes; what is between is rounded up to a power of two. */
const [smallest, largest] = [8 * 1024, 4 * 1024 * 1024];

/** Most that is kept for the next, in bytes. */
const mostKept = 64 * 1024 * 1024;

/** Room that was given back, by its size. */
const kept = new Map<number, ArrayBuffer[]>();
let keptSize = 0;

/** What is lent and may be given back. */
const lent = new WeakSet<ArrayBufferLike>();

/**
 * Room for bytes that are done with soon, such as a request's: to be given back with `giveBackBytes()`. A
 * long prompt is sent each turn, and room outside the heap that is taken anew each time makes the garbage
 * collector go through the whole heap about once a second, since it counts what lies there.
 *
 * @returns `size` bytes with whatever was in them before.
 */
export function lendBytes(size: number): Buffer {
  if (size < smallest || size > largest) return Buffer.allocUnsafe(size);
  const room = roomFor(size);
  const found = kept.get(room)?.pop();
  if (found !== undefined) keptSize -= room;
  const buffer = found ?? Buffer.allocUnsafeSlow(room).buffer;
  lent.add(buffer);
  return Buffer.from(buffer, 0, size);
}

/**
 * Gives back lent bytes, or a part of them that stands for all: nobody may look at them any more. Bytes that
 * were not lent, or were given back before, are left alone. What is never given back is collected as any.
 */
export function giveBackBytes({ buffer }: Uint8Array): void {
  if (!lent.delete(buffer) || keptSize + buffer.byteLength > mostKept) return;
  keptSize += buffer.byteLength;
  const others = kept.get(buffer.byteLength);
  if (others === undefined) kept.set(buffer.byteLength, [buffer as ArrayBuffer]);
  else others.push(buffer as ArrayBuffer);
}

function roomFor(size: number): number {
  return 2 ** Math.ceil(Math.log2(size));
}
