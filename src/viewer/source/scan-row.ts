import { findMembers } from "../../json/json-members.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import type { Sample } from "../../trajectory/sample.ts";

/** Consecutive tokens of a row with the same policy version. `""` if the row names none. */
export interface VersionRun {
  readonly start: number;
  readonly version: string;
}

/** A training row, its long lists as columns. */
export interface ScannedRow {
  readonly ids: Int32Array;
  /** The logprobs. NaN for an invalid number. As long as `ids`, like the mask. */
  readonly logprobs: Float64Array;
  /** The mask. 2 for a value that is neither 0 nor 1. */
  readonly mask: Uint8Array;
  /** The versions from the first token on. Each run reaches up to the start of the next. */
  readonly versionRuns: readonly VersionRun[];
  /** The other members of the row. */
  readonly rest: Partial<Omit<Sample, "tokenIds" | "lossMask" | "logprobs" | "policyVersions">>;
}

interface Lists {
  tokenIds?: Int32Array;
  lossMask?: Uint8Array;
  logprobs?: Float64Array;
  policyVersions?: readonly VersionRun[];
}

/** A list, and the offset after it. */
interface Scanned<List> {
  readonly list: List;
  readonly end: number;
}

const quote = 0x22;
const comma = 0x2c;
const blank = 0x20;
const opening = 0x5b;
const closing = 0x5d;

const scanners = {
  tokenIds: scanIds,
  lossMask: scanMask,
  logprobs: scanLogprobs,
  policyVersions: scanVersions,
} as const;

const everyList = new Set(Object.keys(scanners) as (keyof typeof scanners)[]);

/**
 * Reads a line of `samples.jsonl` in the form that runs write, with its long lists as columns. A row of a million
 * tokens takes half the time and memory of `JSON.parse()`.
 * @param wanted - The lists to read. The other lists are empty in the result.
 * @returns `undefined` for a line in another form, which `JSON.parse()` must read.
 */
export function scanRow(
  line: Buffer,
  wanted: ReadonlySet<keyof typeof scanners> = everyList,
): ScannedRow | undefined {
  const lists: Lists = {};
  let isPlain = true;
  const enter = Object.fromEntries(
    [...wanted].map((name) => [
      name,
      (at: number): number | undefined => {
        const scanned = line[at] === opening ? scanners[name](line, at + 1) : undefined;
        if (scanned === undefined) isPlain = false;
        else Object.assign(lists, { [name]: scanned.list });
        return scanned?.end;
      },
    ]),
  );
  const found = findMembers(line, 0, enter);
  const { tokenIds, lossMask, logprobs, policyVersions } = lists;
  if (!isPlain || found?.end !== line.length || tokenIds === undefined) return undefined;
  const others = [...found.members].filter(([name]) => !(name in scanners));
  const texts = others.map(
    ([name, [start, end]]) => `${JSON.stringify(name)}:${line.toString("utf8", start, end)}`,
  );
  const rest = parseJsonText(`{${texts.join(",")}}`) as ScannedRow["rest"] | undefined;
  if (rest === undefined) return undefined;
  const count = tokenIds.length;
  return {
    ids: tokenIds,
    logprobs: wanted.has("logprobs")
      ? fit(logprobs ?? new Float64Array(0), new Float64Array(count), Number.NaN)
      : new Float64Array(0),
    mask: fit(lossMask ?? new Uint8Array(0), new Uint8Array(count), 2),
    versionRuns: policyVersions ?? [],
    rest,
  };
}

/**
 * Returns the list with the length of the row: cut, or padded with the value for a missing entry.
 */
function fit<Column extends Float64Array | Uint8Array>(
  list: Column,
  whole: Column,
  nothing: number,
): Column {
  if (list.length === whole.length) return list;
  whole.fill(nothing);
  whole.set(list.subarray(0, whole.length));
  return whole;
}

/** Reads a list that has only numbers. */
function scanNumbers(line: Buffer, start: number): Scanned<readonly number[]> | undefined {
  const end = line.indexOf(closing, start);
  if (end < 0) return undefined;
  const text = line.toString("latin1", start, end);
  if (/[^-+.\deE, ]/.test(text)) return undefined;
  const list = parseJsonText(`[${text}]`) as readonly number[] | undefined;
  return list && { list, end: end + 1 };
}

function scanIds(line: Buffer, start: number): Scanned<Int32Array> | undefined {
  const scanned = scanNumbers(line, start);
  if (scanned === undefined) return undefined;
  const ids = new Int32Array(scanned.list);
  // A value that is not a 32-bit integer has changed in the typed array.
  for (let index = 0; index < ids.length; index++) {
    if (ids[index] !== scanned.list[index]) return undefined;
  }
  return { list: ids, end: scanned.end };
}

function scanMask(line: Buffer, start: number): Scanned<Uint8Array> | undefined {
  const scanned = scanNumbers(line, start);
  if (scanned === undefined) return undefined;
  const mask = new Uint8Array(scanned.list.length);
  for (let index = 0; index < mask.length; index++) {
    const bit = scanned.list[index];
    mask[index] = bit === 0 || bit === 1 ? bit : 2;
  }
  return { list: mask, end: scanned.end };
}

function scanLogprobs(line: Buffer, start: number): Scanned<Float64Array> | undefined {
  const scanned = scanNumbers(line, start);
  return scanned && { list: new Float64Array(scanned.list), end: scanned.end };
}

function scanVersions(line: Buffer, start: number): Scanned<readonly VersionRun[]> | undefined {
  const runs: VersionRun[] = [];
  let before = "";
  if (line[start] === closing) return { list: runs, end: start + 1 };
  for (let at = start, index = 0; at < line.length; at++, index++) {
    if (line[at] !== quote) return undefined;
    let end = at + 1;
    while (end < line.length && line[end] !== quote) end += line[end] === 0x5c ? 2 : 1;
    // Nearly all are what the one before them was.
    const isEmpty = end === at + 1;
    const text = isEmpty ? '""' : line.toString("utf8", at, end + 1);
    if (text !== before) {
      const version = parseJsonText(text) as string | undefined;
      if (version === undefined) return undefined;
      runs.push({ start: index, version });
      before = text;
    }
    at = end + 1;
    if (line[at] === closing) return { list: runs, end: at + 1 };
    if (line[at] !== comma) return undefined;
    if (line[at + 1] === blank) at++;
  }
  return undefined;
}
