import type { ColumnPart } from "../../columns/column-part.ts";
import type { ColumnSource } from "../../columns/column-source.ts";
import {
  expertBytes,
  rowBytesOf,
  type ColumnName,
  type ColumnSpecs,
} from "../../columns/column-specs.ts";
import { UsageError } from "../../errors.ts";

/** Maximum number of positions of a layer, and of ids of a token, that are read. */
export const mostRead = { positions: 32, ids: 1000 } as const;

/** The layers of a token's row. */
export interface LayerRow {
  readonly layers: readonly (readonly number[])[];
  readonly perToken: number;
}

/** The ids of a token's row. */
export interface IdRow {
  readonly ids: readonly number[];
  readonly logprobs?: readonly number[];
  /** Number of ids of the row. `ids` has the first ones. */
  readonly count: number;
}

/**
 * Reads a row of a column with layers. Reads only the row's bytes.
 *
 * @param row - Index of the row in the part.
 * @throws UsageError if the bytes are not there, or the part's size is not that of its rows.
 */
export async function readLayerRow(
  source: ColumnSource,
  part: ColumnPart,
  { name, specs, row }: { name: ColumnName; specs: ColumnSpecs; row: number },
): Promise<LayerRow> {
  const rowBytes = rowBytesOf(name, specs);
  if (rowBytes === undefined || part.size !== part.rows * rowBytes) throw wrongSize(part);
  const read = await source.read(part, { start: row * rowBytes, end: (row + 1) * rowBytes });
  // A copy, because lists of larger numbers begin at a multiple of their size.
  const { buffer } = new Uint8Array(read);
  const { layerCount, perToken } =
    name === "routedExperts" ? specs.routedExperts! : specs.indexerTopK!;
  const values =
    name === "indexerTopK"
      ? new Int32Array(buffer)
      : expertBytes(specs.routedExperts!) === 1
        ? new Uint8Array(buffer)
        : new Uint16Array(buffer);
  const shown = name === "indexerTopK" ? Math.min(perToken, mostRead.positions) : perToken;
  const layers = Array.from({ length: layerCount }, (_, layer) => [
    ...values.subarray(layer * perToken, layer * perToken + shown),
  ]);
  return { layers, perToken };
}

/**
 * Reads a row of a column whose rows differ in length. Reads the counts of the rows before it, and the row's own ids
 * and logprobs.
 *
 * @param row - Index of the row in the part.
 * @throws UsageError as `readLayerRow()` does.
 */
export async function readIdRow(
  source: ColumnSource,
  part: ColumnPart,
  { hasLogprobs, row }: { hasLogprobs: boolean; row: number },
): Promise<IdRow> {
  const { rows, size } = part;
  const total = (size / 4 - rows) / (hasLogprobs ? 2 : 1);
  if (!Number.isInteger(total) || total < 0) throw wrongSize(part);
  const words = async (first: number, count: number): Promise<ArrayBuffer> => {
    const read = await source.read(part, { start: first * 4, end: (first + count) * 4 });
    return new Uint8Array(read).buffer;
  };
  const counts = new Uint32Array(await words(0, row + 1));
  const count = counts[row]!;
  let before = 0;
  for (const own of counts.subarray(0, row)) before += own;
  if (before + count > total) throw wrongSize(part);
  const shown = Math.min(count, mostRead.ids);
  const ids = [...new Int32Array(await words(rows + before, shown))];
  if (!hasLogprobs) return { ids, count };
  const logprobs = [...new Float32Array(await words(rows + total + before, shown))];
  return { ids, count, logprobs };
}

function wrongSize({ from, rows, size, hash }: ColumnPart): UsageError {
  return new UsageError(
    `Cannot read the column part ${hash}: its ${size} bytes are not those of ${rows} rows from token ${from} on; ` +
      "turnwright verify names the fault",
  );
}
