import type { ColumnName, ColumnSpecs } from "./column-specs.ts";

/** A problem of a generation's columns. */
export interface ColumnProblem {
  /** The second half of "Cannot …: <problem>". */
  readonly problem: string;
  readonly expected: string;
}

/** A check that pauses now and then, so that other work can run in between. */
export type PausingCheck = Generator<undefined, ColumnProblem | undefined>;

/** The request and the sampled ids that columns belong to. */
export interface ColumnsWanted {
  readonly specs: ColumnSpecs;
  /** See `ColumnRequest.knownRows`. */
  readonly knownRows: number;
  /** Number of the request's prompt ids. */
  readonly promptLength: number;
  readonly sampledIds: readonly number[];
  /** All ids are below it. If absent, any valid id is accepted. */
  readonly vocabularySize?: number | undefined;
}

/** A part whose place, size and members were checked. */
export interface CheckedPart {
  readonly rows: number;
  readonly bytes: Uint8Array;
  /** Index of the part's first row among the column's rows of this generation. */
  readonly start: number;
}

/** Finds a part whose bytes are not those of its rows. */
export function findSizeProblem(
  name: ColumnName,
  { rows, bytes }: CheckedPart,
  rowBytes: number,
): ColumnProblem | undefined {
  if (bytes.length === rows * rowBytes) return undefined;
  const found = bytes.length / rowBytes;
  return Number.isInteger(found)
    ? { problem: `column ${name} has ${found} rows`, expected: `${rows}` }
    : { problem: `column ${name} has ${bytes.length} bytes`, expected: `${rowBytes} a row` };
}
