import { createHash } from "node:crypto";
import { columnHashDigits, type ColumnPart } from "../../columns/column-part.ts";
import type { ColumnSource } from "../../columns/column-source.ts";
import { bytesAtOnce } from "../../columns/hash-in-turns.ts";
import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import { UsageError } from "../../errors.ts";
import type { ColumnCheck } from "../model/side-columns.ts";

/** Compares the bytes of parts with their hashes. Reads a slice at a time, and lets other work run in between. */
export async function checkPartHashes(
  source: ColumnSource,
  parts: readonly ColumnPart[],
): Promise<ColumnCheck> {
  const faults: string[] = [];
  let byteCount = 0;
  for (const part of parts) {
    byteCount += part.size;
    const fault = await findFault(source, part);
    if (fault !== undefined) faults.push(fault);
  }
  return { partCount: parts.length, byteCount, faults };
}

async function findFault(source: ColumnSource, part: ColumnPart): Promise<string | undefined> {
  const { from, rows, size } = part;
  const hash = createHash("sha256");
  try {
    for (let start = 0; start < size; start += bytesAtOnce) {
      const bytes = await source.read(part, { start, end: Math.min(size, start + bytesAtOnce) });
      if (isShareOver()) await takeTurn();
      hash.update(bytes);
    }
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  if (hash.digest("hex").slice(0, columnHashDigits) === part.hash) return undefined;
  return `the part of tokens ${from} to ${from + rows - 1} was changed: its bytes do not have the hash ${part.hash}`;
}
