import { UsageError, describeError } from "../../errors.ts";
import type { Vocabulary } from "../../tokenizer/vocabulary.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { findKinds } from "../model/find-kinds.ts";
import type { RowColumns, VersionBand } from "../model/row-columns.ts";
import { spellIds } from "./spell-ids.ts";

/** What reading a row for the page needs to know of its run. */
export interface RowReading {
  /** Ids that end a turn, where the run names them. */
  readonly stopIds?: ReadonlySet<number>;
  readonly vocabulary?: Vocabulary;
  /** Why there is no vocabulary. */
  readonly vocabularyNote?: string;
}

/**
 * Reads a line of `samples.jsonl` into columns. What a damaged row lacks is shown as it is: numbers that
 * are none become NaN, masks that are none become 2.
 *
 * @throws UsageError where the line is no training row at all.
 */
export function readRow(line: Buffer, reading: RowReading): RowColumns {
  const row = parseRow(line);
  const { tokenIds, lossMask, logprobs, turns, promptLength } = row;
  const { stopIds } = reading;
  const ids = Int32Array.from(tokenIds);
  const dropped = turns.flatMap(({ droppedStopId }) => droppedStopId ?? []);
  const { rolloutId, groupId, segment, outcome, stopReason, reward, metadata } = row;
  return {
    header: {
      ...{ rolloutId, groupId, segment, tokenCount: ids.length, promptLength, turns },
      versions: versionBands(row),
      ...{ outcome, stopReason, metadata },
      ...(reward === undefined ? {} : { reward }),
      ...spellRow(ids, reading, dropped),
    },
    ids,
    logprobs: fill(new Float64Array(ids.length), (index) => toNumber(logprobs[index])),
    kinds: findKinds(row, stopIds),
    mask: fill(new Uint8Array(ids.length), (index) => toMask(lossMask[index])),
  };
}

/** What the ids of a row spell, as its header says it; `more` are ids that stand nowhere in the row. */
export function spellRow(
  ids: Int32Array,
  { vocabulary, vocabularyNote }: RowReading,
  more: readonly number[] = [],
): Pick<RowColumns["header"], "pieces" | "piecesNote"> {
  return {
    ...(vocabulary === undefined ? {} : { pieces: spellIds(vocabulary, distinct(ids, more)) }),
    ...(vocabularyNote === undefined ? {} : { piecesNote: vocabularyNote }),
  };
}

/** Rows have millions of ids: `from()` of a typed array takes five times as long. */
function fill<Column extends Float64Array | Uint8Array>(
  column: Column,
  valueAt: (index: number) => number,
): Column {
  for (let index = 0; index < column.length; index++) column[index] = valueAt(index);
  return column;
}

function parseRow(line: Buffer): Sample {
  let row: Partial<Sample> | null;
  try {
    row = JSON.parse(line.toString("utf8")) as Partial<Sample> | null;
  } catch (error) {
    throw new UsageError(`Cannot read a training row: ${describeError(error)}`, { cause: error });
  }
  const { tokenIds, turns } = row ?? {};
  if (!Array.isArray(tokenIds) || !Array.isArray(turns)) {
    throw new UsageError("Cannot read a training row: it has no tokenIds or no turns");
  }
  const lists = { lossMask: [], logprobs: [], policyVersions: [], metadata: {}, promptLength: 0 };
  return { ...lists, ...row } as Sample;
}

function toNumber(value: unknown): number {
  return typeof value === "number" ? value : Number.NaN;
}

function toMask(value: unknown): number {
  return value === 0 || value === 1 ? value : 2;
}

function versionBands({ policyVersions, turns }: Sample): readonly VersionBand[] {
  const bands: VersionBand[] = [];
  for (const { start, end } of turns) {
    let from = start;
    for (let index = start + 1; index <= end; index++) {
      if (index < end && policyVersions[index] === policyVersions[from]) continue;
      bands.push({ start: from, end: index, version: policyVersions[from] ?? "" });
      from = index;
    }
  }
  return bands.filter((band) => band.end > band.start);
}

/** Each id once. */
function distinct(ids: Int32Array, more: readonly number[]): readonly number[] {
  const found = new Set(more);
  const seen = new Uint8Array(1 << 20);
  for (const id of ids) {
    if (seen[id] === 1) continue;
    seen[id] = 1;
    found.add(id);
  }
  return [...found];
}
