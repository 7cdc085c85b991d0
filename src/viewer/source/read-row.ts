import { UsageError, describeError } from "../../errors.ts";
import type { Vocabulary } from "../../tokenizer/byte-pair/vocabulary.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { findKinds } from "../model/find-kinds.ts";
import type { BranchRow } from "../model/row-tree.ts";
import type { RowColumns, VersionBand } from "../model/row-columns.ts";
import { readParts } from "./read-parts.ts";
import { scanRow, type ScannedRow, type VersionRun } from "./scan-row.ts";
import { spellIds } from "./spell-ids.ts";

/** The facts about a run that reading its rows needs. */
export interface RowReading {
  /** Ids that end a turn, if the run names them. */
  readonly stopIds?: ReadonlySet<number>;
  readonly vocabulary?: Vocabulary;
  /** The reason why the vocabulary is missing. */
  readonly vocabularyNote?: string;
}

/**
 * Reads a line of `samples.jsonl` into columns. Keeps the faults of a damaged row visible: invalid
 * numbers become NaN, and invalid masks become 2.
 * @throws UsageError if the line is not a training row.
 */
export function readRow(line: Buffer, reading: RowReading): RowColumns {
  const { ids, logprobs, mask, versionRuns, rest } = scanRow(line) ?? parseRow(line);
  if (!Array.isArray(rest.turns)) throw noRow();
  const row = { ...missing, ...rest } as Omit<Sample, "tokenIds">;
  const { turns, promptLength, rolloutId, groupId, segment, outcome, stopReason } = row;
  const { stopIds } = reading;
  const { reward, metadata, forkedFrom } = row;
  const sideColumns = readParts(row.columns);
  const dropped = turns.flatMap(({ droppedStopId }) => droppedStopId ?? []);
  return {
    header: {
      rolloutId,
      groupId,
      segment,
      tokenCount: ids.length,
      promptLength,
      turns,
      versions: versionBands(turns, versionRuns),
      outcome,
      stopReason,
      metadata,
      ...(reward !== undefined && { reward }),
      ...(forkedFrom !== undefined && { forkedFrom }),
      ...(sideColumns !== undefined && { sideColumns }),
      ...spellRow(ids, reading, dropped),
    },
    ids,
    logprobs,
    kinds: findKinds({ ...row, tokenIds: ids }, stopIds),
    mask,
  };
}

/**
 * Reads the members of the same line that the tree of its episode needs.
 *
 * @throws UsageError as `readRow()` does.
 */
export function readBranchRow(line: Buffer): BranchRow {
  const { ids, mask, rest } = scanRow(line, branchLists) ?? parseRow(line);
  const { turns } = rest;
  if (!Array.isArray(turns)) throw noRow();
  let trainedCount = 0;
  for (const bit of mask) if (bit === 1) trainedCount++;
  return { ids, header: { turns: turns as Sample["turns"] }, trainedCount };
}

const branchLists = new Set(["tokenIds", "lossMask"] as const);

/** Returns the texts of a row's ids for its header. `more` are ids that do not occur in the row. */
export function spellRow(
  ids: Int32Array,
  { vocabulary, vocabularyNote }: RowReading,
  more: readonly number[] = [],
): Pick<RowColumns["header"], "pieces" | "piecesNote"> {
  return {
    ...(vocabulary !== undefined && { pieces: spellIds(vocabulary, ids, more) }),
    ...(vocabularyNote !== undefined && { piecesNote: vocabularyNote }),
  };
}

/** The defaults for missing members. */
const missing = { metadata: {}, promptLength: 0 };

/** Parses a row that is JSON in any form. */
function parseRow(line: Buffer): ScannedRow {
  let row: Partial<Sample> | null;
  try {
    row = JSON.parse(line.toString("utf8")) as Partial<Sample> | null;
  } catch (error) {
    throw new UsageError(`Cannot read a training row: ${describeError(error)}`, { cause: error });
  }
  const { tokenIds, lossMask = [], logprobs = [], policyVersions = [], ...rest } = row ?? {};
  if (!Array.isArray(tokenIds)) throw noRow();
  const ids = Int32Array.from(tokenIds as readonly number[]);
  const versionRuns: VersionRun[] = [];
  for (const [start, version] of policyVersions.entries()) {
    if (version !== versionRuns.at(-1)?.version) versionRuns.push({ start, version });
  }
  return {
    ids,
    versionRuns,
    rest,
    logprobs: fill(new Float64Array(ids.length), (index) => toNumber(logprobs[index])),
    mask: fill(new Uint8Array(ids.length), (index) => toMask(lossMask[index])),
  };
}

function noRow(): UsageError {
  return new UsageError("Cannot read a training row: it has no tokenIds or no turns");
}

/**
 * Copies values into a typed array. Rows have millions of ids, and the array's own `from()` takes five times as long.
 */
function fill<Column extends Float64Array | Uint8Array>(
  column: Column,
  valueAt: (index: number) => number,
): Column {
  for (let index = 0; index < column.length; index++) column[index] = valueAt(index);
  return column;
}

function toNumber(value: unknown): number {
  return typeof value === "number" ? value : Number.NaN;
}

function toMask(value: unknown): number {
  return value === 0 || value === 1 ? value : 2;
}

/** Returns the ids that each version sampled in each turn. */
function versionBands(turns: Sample["turns"], runs: readonly VersionRun[]): readonly VersionBand[] {
  const bands: VersionBand[] = [];
  let place = 0;
  for (const { start, end } of turns) {
    // Turns rise, but in a damaged row.
    if ((runs[place]?.start ?? 0) > start) place = 0;
    while ((runs[place + 1]?.start ?? Infinity) <= start) place++;
    for (let from = start; from < end;) {
      const to = Math.min(end, runs[place + 1]?.start ?? end);
      bands.push({ start: from, end: to, version: runs[place]?.version ?? "" });
      from = to;
      if (from < end) place++;
    }
  }
  return bands;
}
