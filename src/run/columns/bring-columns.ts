import type { ColumnPart } from "../../columns/column-part.ts";
import { UsageError } from "../../errors.ts";
import type { Fork } from "../schedule/task-source.ts";
import type { ColumnWriter } from "./column-writer.ts";
import { recordedParts } from "./named-parts.ts";

/**
 * Copies the parts of side columns that a fork's inputs name into the run's folder, unless it has them. One part at a
 * time is in memory. Resolves when they are synced.
 *
 * @param writer - The run's files. `undefined` if the run has no folder: the parts then need their bytes in memory.
 * @throws UsageError if bytes are missing, or the disk fails.
 */
export async function bringColumns(fork: Fork, writer: ColumnWriter | undefined): Promise<void> {
  const brought = new Set<string>();
  for (const { name, part } of recordedParts(fork.inputs)) {
    if (brought.has(part.hash)) continue;
    brought.add(part.hash);
    if (writer === undefined) {
      if (part.bytes === undefined) throw missing(fork, "this run has no folder for them");
    } else if (!(await writer.has(part.hash))) {
      await writer.keep({ [name]: [{ ...part, bytes: await bytesOf(fork, part) }] });
    }
  }
  await writer?.flush();
}

async function bytesOf(fork: Fork, part: ColumnPart): Promise<Uint8Array> {
  if (part.bytes !== undefined) return part.bytes;
  if (fork.columns === undefined) {
    throw missing(fork, "the fork does not say where they are; give it `columns`");
  }
  return await fork.columns.read(part);
}

function missing({ place }: Fork, why: string): UsageError {
  return new UsageError(
    `Cannot part from ${place.rolloutId} with turn ${place.turnIndex}: its turns have side columns, and ${why}`,
  );
}
