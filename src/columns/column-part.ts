import { hash } from "node:crypto";
import { isCount } from "../values/is-count.ts";
import { isObject } from "../values/is-object.ts";
import type { ColumnName } from "./column-specs.ts";

/**
 * Consecutive rows of a column, as one reply of the engine brought them. JSON-able without `bytes`, as it is after the
 * bytes were written to a run's folder.
 */
export interface ColumnPart {
  /** Index of the first row's token in the training row. */
  readonly from: number;
  /** Number of rows, at least 1. */
  readonly rows: number;
  /** Version of the weights that computed the rows, or `""` if the engine reports none. */
  readonly policyVersion: string;
  /** Number of bytes. */
  readonly size: number;
  /** The first 32 hexadecimal digits of the bytes' SHA-256. The bytes are found by it. */
  readonly hash: string;
  /** The rows, in the column's layout. Absent if they are in a file. */
  readonly bytes?: Uint8Array;
}

/** The columns of a generation, or of a training row. Parts are in order, and do not overlap. */
export type ColumnParts = Readonly<Partial<Record<ColumnName, readonly ColumnPart[]>>>;

/** Creates a part. Computes the hash of its bytes. */
export function createColumnPart({
  from,
  rows,
  policyVersion,
  bytes,
}: Pick<ColumnPart, "from" | "rows" | "policyVersion"> & {
  readonly bytes: Uint8Array;
}): ColumnPart {
  return { from, rows, policyVersion, size: bytes.length, hash: hashColumnBytes(bytes), bytes };
}

/** True if a value read from a file is a part. */
export function isColumnPart(value: unknown): value is ColumnPart {
  const { from, rows, policyVersion, size, hash: found } = isObject(value) ? value : {};
  return (
    isCount(from) &&
    isCount(rows) &&
    rows > 0 &&
    isCount(size) &&
    typeof policyVersion === "string" &&
    typeof found === "string" &&
    /^[0-9a-f]{32}$/.test(found)
  );
}

/** Returns the parts of a row's column. `undefined` if the row has none, or if what it has are no parts. */
export function partsIn(
  { columns }: { readonly columns?: unknown },
  name: ColumnName,
): readonly ColumnPart[] | undefined {
  const parts = isObject(columns) ? columns[name] : undefined;
  return Array.isArray(parts) && parts.every(isColumnPart) ? parts : undefined;
}

/** Number of hexadecimal digits of a part's hash. */
export const columnHashDigits = 32;

/** Returns the hash under which a part's bytes are stored. */
export function hashColumnBytes(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex").slice(0, columnHashDigits);
}

/** Returns the part as it is written: without its bytes. */
export function withoutBytes({ bytes: _bytes, ...part }: ColumnPart): ColumnPart {
  return part;
}

/** Joins the columns of two generations of a turn. The second begins where the first ends. */
export function joinColumns(
  first: ColumnParts | undefined,
  second: ColumnParts | undefined,
): ColumnParts | undefined {
  if (first === undefined) return second;
  if (second === undefined) return first;
  const joined: Partial<Record<ColumnName, readonly ColumnPart[]>> = { ...first };
  for (const name of Object.keys(second) as ColumnName[]) {
    joined[name] = [...(first[name] ?? []), ...second[name]!];
  }
  return joined;
}
