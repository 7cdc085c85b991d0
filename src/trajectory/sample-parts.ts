import { isCount, isRow, quote, type RawRow, type Violation } from "./violation.ts";

/** A turn that has its place in the row; the other fields are as they were read. */
export interface TurnPart extends RawRow {
  readonly start: number;
  /** Not before `start`, nor behind the last id. */
  readonly end: number;
}

/** What could be read of a row; what could not is `undefined`, and everything else is still checked. */
export interface SampleParts {
  readonly row: RawRow;
  readonly ids: readonly unknown[] | undefined;
  readonly promptLength: number | undefined;
  readonly mask: readonly unknown[] | undefined;
  readonly logprobs: readonly unknown[] | undefined;
  readonly versions: readonly unknown[] | undefined;
  /** `undefined` in the place of a turn that has none in the row. */
  readonly turns: readonly (TurnPart | undefined)[] | undefined;
  /** Which ids were sampled: by the turns, or by the mask where a turn has no place; else unknown. */
  readonly isSampled: readonly boolean[] | undefined;
}

/** Takes a row apart, and says what is missing or no such thing. */
export function readSampleParts(row: RawRow): { parts: SampleParts; found: Violation[] } {
  const found: Violation[] = [];
  if (row["format"] !== 1) {
    found.push({ rule: "format", detail: `format is ${quote(row["format"])}, expected 1` });
  }
  for (const field of ["rolloutId", "groupId", "taskId"]) {
    if (typeof row[field] === "string" && row[field] !== "") continue;
    found.push({ rule: "shape", detail: `${field} is missing or no text` });
  }
  if (!isCount(row["segment"])) found.push({ rule: "shape", detail: "segment is no whole number" });
  if (!isRow(row["metadata"])) found.push({ rule: "shape", detail: "metadata is no object" });
  const ids = listOf(row, "tokenIds", found);
  const promptLength = promptLengthOf(row, ids, found);
  const mask = alignedList(row, "lossMask", { ids, found });
  const logprobs = alignedList(row, "logprobs", { ids, found });
  const versions = alignedList(row, "policyVersions", { ids, found });
  const turns = listOf(row, "turns", found)?.map((turn, index) =>
    readTurn(turn, index, { ids, found }),
  );
  const isSampled = findSampled({ ids, mask, turns });
  return { parts: { row, ids, promptLength, mask, logprobs, versions, turns, isSampled }, found };
}

function findSampled({
  ids,
  mask,
  turns,
}: Pick<SampleParts, "ids" | "mask" | "turns">): readonly boolean[] | undefined {
  if (ids === undefined) return undefined;
  const placed = turns?.filter((turn) => turn !== undefined) ?? [];
  if (turns === undefined || placed.length < turns.length) {
    return mask?.length === ids.length ? mask.map((bit) => bit === 1) : undefined;
  }
  const isSampled = new Array<boolean>(ids.length).fill(false);
  for (const { start, end } of placed) isSampled.fill(true, start, end);
  return isSampled;
}

function listOf(row: RawRow, field: string, found: Violation[]): readonly unknown[] | undefined {
  const value = row[field];
  if (Array.isArray(value)) return value;
  found.push({ rule: "shape", detail: `${field} is missing or no list` });
  return undefined;
}

type Reading = { readonly ids: readonly unknown[] | undefined; readonly found: Violation[] };

function alignedList(row: RawRow, field: string, { ids, found }: Reading) {
  const values = listOf(row, field, found);
  if (values === undefined || ids === undefined || values.length === ids.length) return values;
  found.push({
    rule: "length",
    detail: `${field} has ${values.length} entries for ${ids.length} token ids`,
  });
  return values;
}

function promptLengthOf(row: RawRow, ids: Reading["ids"], found: Violation[]) {
  const length = row["promptLength"];
  if (isCount(length) && length >= 1 && (ids === undefined || length <= ids.length)) return length;
  const count = ids === undefined ? "no" : ids.length;
  const detail = `promptLength is ${quote(length)} for ${count} token ids`;
  found.push({ rule: "prompt-length", detail });
  return undefined;
}

function readTurn(turn: unknown, index: number, { ids, found }: Reading): TurnPart | undefined {
  if (!isRow(turn) || !isCount(turn["start"]) || !isCount(turn["end"])) {
    found.push({ rule: "shape", detail: `turns[${index}] has no start and end` });
    return undefined;
  }
  const { start, end } = turn;
  if (start <= end && (ids === undefined || end <= ids.length)) return turn as TurnPart;
  const count = ids === undefined ? "" : ` of ${ids.length} ids`;
  found.push({ rule: "turns", detail: `turns[${index}] is ${start} to ${end}${count}` });
  return undefined;
}
