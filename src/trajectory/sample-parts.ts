import { isObject } from "../values/is-object.ts";
import { isCount, quote, type RawRow, type Violation } from "./violation.ts";

/** A turn with a valid place in the row. The other fields are unchecked. */
export interface TurnPart extends RawRow {
  readonly start: number;
  /** At least `start`, at most the number of ids. */
  readonly end: number;
}

/** The readable parts of a row. Unreadable parts are `undefined`, so that the others can still be checked. */
export interface SampleParts {
  readonly row: RawRow;
  readonly ids: readonly unknown[] | undefined;
  readonly promptLength: number | undefined;
  readonly mask: readonly unknown[] | undefined;
  readonly logprobs: readonly unknown[] | undefined;
  readonly versions: readonly unknown[] | undefined;
  /** An entry is `undefined` if the turn has no valid place in the row. */
  readonly turns: readonly (TurnPart | undefined)[] | undefined;
  /**
   * True for each sampled id. Derived from the turns, or from the mask if a turn has no valid place. `undefined` if
   * neither is readable.
   */
  readonly isSampled: readonly boolean[] | undefined;
}

/** Reads the parts of a row, and reports missing and invalid ones. */
export function readSampleParts(row: RawRow): { parts: SampleParts; found: Violation[] } {
  const found: Violation[] = [];
  if (row["format"] !== 1) {
    found.push({ rule: "format", detail: `format is ${quote(row["format"])}, expected 1` });
  }
  for (const field of ["rolloutId", "groupId", "taskId"]) {
    if (typeof row[field] === "string" && row[field] !== "") continue;
    found.push({ rule: "shape", detail: `${field} is missing or no text` });
  }
  if (!isCount(row["segment"]))
    found.push({ rule: "shape", detail: "segment is not a whole number" });
  if (!isObject(row["metadata"]))
    found.push({ rule: "shape", detail: "metadata is not an object" });
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
  found.push({ rule: "shape", detail: `${field} is missing or not a list` });
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
  if (!isObject(turn) || !isCount(turn["start"]) || !isCount(turn["end"])) {
    found.push({ rule: "shape", detail: `turns[${index}] has no start and end` });
    return undefined;
  }
  const { start, end } = turn;
  if (start <= end && (ids === undefined || end <= ids.length)) return turn as TurnPart;
  const count = ids === undefined ? "" : ` of ${ids.length} ids`;
  found.push({ rule: "turns", detail: `turns[${index}] is ${start} to ${end}${count}` });
  return undefined;
}
