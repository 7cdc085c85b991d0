import { acquireBytes, releaseBytes } from "../../text/lent-bytes.ts";
import { type OpenFile, writeAll } from "./files.ts";

/** The size in bytes up to which blocks are joined before they are written. */
const blockSize = 1024 * 1024;

/**
 * Writes blocks one after the other. Small ones are joined, so that a thousand of them need few writes. Owns the blocks
 * from now on: borrowed ones are returned to the pool (see `acquireBytes()`).
 *
 * @param position - The position of the first block in the file, in bytes.
 * @returns the end of the last block.
 */
export async function writeBlocks(
  file: OpenFile,
  blocks: readonly Uint8Array[],
  position: number,
): Promise<number> {
  let end = position;
  for (const block of mergeBlocks(blocks)) {
    await writeAll(file, block, end);
    end += block.length;
    releaseBytes(block);
  }
  return end;
}

/**
 * Joins small blocks, so that a thousand short lines need few writes. Returns the joined blocks to the pool; the caller
 * returns the blocks that it gets.
 */
function* mergeBlocks(blocks: readonly Uint8Array[]): Generator<Uint8Array> {
  let merged: Uint8Array[] = [];
  let length = 0;
  for (const block of blocks) {
    if (length + block.length > blockSize && length > 0) {
      yield joined(merged, length);
      merged = [];
      length = 0;
    }
    merged.push(block);
    length += block.length;
  }
  if (length > 0) yield joined(merged, length);
}

function joined(blocks: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = blocks;
  if (only !== undefined && blocks.length === 1) return only;
  const joinedBlock = acquireBytes(length);
  let end = 0;
  for (const block of blocks) {
    joinedBlock.set(block, end);
    end += block.length;
    releaseBytes(block);
  }
  return joinedBlock;
}
