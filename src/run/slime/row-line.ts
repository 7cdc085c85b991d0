import { isObject } from "../../values/is-object.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { parseJson } from "../folder/episode-row.ts";

/** A training row whose long lists are bytes of its line, without brackets: JSON items with commas between. */
export interface RowLine extends Omit<
  Sample,
  "tokenIds" | "lossMask" | "logprobs" | "policyVersions"
> {
  readonly tokenCount: number;
  readonly tokenIds: Buffer;
  /** The mask of the items after the prompt. */
  readonly lossMask: Buffer;
  /** The logprobs of the items after the prompt. */
  readonly logprobs: Buffer;
  readonly policyVersions: Buffer;
}

/** The long lists of a row, in the order in which `encodeRow()` writes them. */
const lists = ["tokenIds", "lossMask", "logprobs", "policyVersions"] as const;

/**
 * Reads a line of `samples.jsonl` without converting its numbers. So a long row takes a fraction of the time of
 * `JSON.parse()`.
 *
 * @returns `undefined` if the line has another form than `encodeRow()` writes, for example spaces between its members.
 */
export function readRowLine(line: Buffer): RowLine | undefined {
  const cuts: Buffer[] = [];
  const rest: Buffer[] = [];
  let end = 0;
  for (const name of lists) {
    const opening = `"${name}":[`;
    // A quote within a text is escaped, so this is a member's name.
    const start = line.indexOf(opening, end);
    if (start < 0) return undefined;
    const first = start + opening.length;
    const last = endOfList(line, first);
    if (last < 0) return undefined;
    rest.push(line.subarray(end, first));
    cuts.push(line.subarray(first, last));
    end = last;
  }
  rest.push(line.subarray(end));
  const row = parseJson(Buffer.concat(rest));
  if (!isObject(row) || typeof row["promptLength"] !== "number") return undefined;
  const [tokenIds, lossMask, logprobs, policyVersions] = cuts as [Buffer, Buffer, Buffer, Buffer];
  const { promptLength } = row;
  // Each item of the mask is one digit.
  const tokenCount = lossMask.length === 0 ? 0 : (lossMask.length + 1) / 2;
  const skipped = 2 * promptLength;
  if (!startsWithZeros(lossMask, promptLength)) return undefined;
  if (!startsWithZeros(logprobs, promptLength)) return undefined;
  return {
    ...(row as unknown as Sample),
    tokenCount,
    tokenIds,
    lossMask: lossMask.subarray(skipped),
    logprobs: logprobs.subarray(skipped),
    policyVersions,
  };
}

/** Returns a row with its long lists as JSON items. */
export function toRowLine(sample: Sample): RowLine {
  const { tokenIds, lossMask, logprobs, policyVersions, promptLength } = sample;
  const itemsOf = (list: readonly unknown[]): Buffer =>
    Buffer.from(JSON.stringify(list).slice(1, -1));
  return {
    ...sample,
    tokenCount: tokenIds.length,
    tokenIds: itemsOf(tokenIds),
    lossMask: itemsOf(lossMask.slice(promptLength)),
    logprobs: itemsOf(logprobs.slice(promptLength)),
    policyVersions: itemsOf(policyVersions),
  };
}

/** Returns the index of the bracket that closes a list of numbers or texts; -1 if there is none. */
function endOfList(line: Buffer, first: number): number {
  if (line[first] !== quote) return line.indexOf("]", first);
  for (let at = first; line[at] === quote; at += 1) {
    at = endOfText(line, at);
    if (line[at] === closing) return at;
    if (line[at] !== comma) return -1;
  }
  return -1;
}

/** Returns the index after a JSON text that starts at `start`. */
function endOfText(line: Buffer, start: number): number {
  let at = start + 1;
  while (at < line.length && line[at] !== quote) at += line[at] === backslash ? 2 : 1;
  return at + 1;
}

/** True if the first items of a list are zeros, so that each takes two bytes with its comma. */
function startsWithZeros(items: Buffer, count: number): boolean {
  for (let index = 0; index < count; index++) {
    const after = items[2 * index + 1];
    if (items[2 * index] !== zero || (after !== comma && after !== undefined)) return false;
  }
  return true;
}

/** Returns the texts at these indexes of a list, which ascend; `""` for an index after its end. */
export function textsAt(list: Buffer, indexes: readonly number[]): readonly string[] {
  const found: string[] = [];
  let at = 0;
  let index = 0;
  for (const wanted of indexes) {
    for (; index < wanted; index++) at = endOfText(list, at) + 1;
    const text = list.toString("utf8", at, endOfText(list, at));
    found.push(text === "" ? "" : (JSON.parse(text) as string));
  }
  return found;
}

const quote = '"'.charCodeAt(0);
const backslash = "\\".charCodeAt(0);
const comma = ",".charCodeAt(0);
const closing = "]".charCodeAt(0);
const zero = "0".charCodeAt(0);
