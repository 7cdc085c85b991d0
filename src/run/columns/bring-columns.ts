import type { ColumnPart } from "../../columns/column-part.ts";
import { rowBytesOf, type ColumnSpecs } from "../../columns/column-specs.ts";
import { hashInTurns } from "../../columns/hash-in-turns.ts";
import { UsageError } from "../../errors.ts";
import type { Fork } from "../schedule/task-source.ts";
import type { ColumnWriter } from "./column-writer.ts";
import { recordedParts, type NamedPart } from "./named-parts.ts";

/**
 * Copies the parts of side columns that a fork's inputs name into the run's folder, unless it has them. One part at a
 * time is in memory. Resolves when they are synced.
 *
 * @param options.specs - The run's side columns. Empty if it has none.
 * @param options.writer - The run's files. `undefined` if the run has no folder: the parts then need their bytes in
 *   memory.
 * @throws UsageError if the run does not request a column of the inputs, if bytes are missing or changed, or if the disk
 *   fails.
 */
export async function bringColumns(
  fork: Fork,
  { specs, writer }: { readonly specs: ColumnSpecs; readonly writer: ColumnWriter | undefined },
): Promise<void> {
  const brought = new Set<string>();
  for (const named of recordedParts(fork.inputs)) {
    const { name, part } = named;
    requireRequested(fork, named, specs);
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

/** Throws for a column that the fork's own turns would not continue. */
function requireRequested(
  { place }: Fork,
  { name, part: { rows, size } }: NamedPart,
  specs: ColumnSpecs,
): void {
  const rowBytes = rowBytesOf(name, specs) ?? size / rows;
  if (specs[name] !== undefined && size === rows * rowBytes) return;
  const found = `its turns have the side column ${name}`;
  const why =
    specs[name] === undefined
      ? `${found}, and this run does not request it`
      : `${found} with ${size / rows} bytes a token, and this run requests ${rowBytes}`;
  throw new UsageError(
    `Cannot part from ${place.rolloutId} with turn ${place.turnIndex}: ${why}; request the columns that it was played with`,
  );
}

async function bytesOf(fork: Fork, part: ColumnPart): Promise<Uint8Array> {
  if (part.bytes !== undefined) return part.bytes;
  if (fork.columns === undefined) {
    throw missing(fork, "the fork does not say where they are; give it `columns`");
  }
  const bytes = await fork.columns.read(part);
  if ((await hashInTurns(bytes)) === part.hash) return bytes;
  throw missing(fork, `the bytes of the part ${part.hash} were changed`);
}

function missing({ place }: Fork, why: string): UsageError {
  return new UsageError(
    `Cannot part from ${place.rolloutId} with turn ${place.turnIndex}: its turns have side columns, and ${why}`,
  );
}
