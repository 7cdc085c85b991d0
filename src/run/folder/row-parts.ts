import { defaultLimit, type JsonPart, memberParts } from "../../json/json-pieces.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { columnsOf } from "../../trajectory/segment.ts";
import { columnParts } from "./column-parts.ts";

/**
 * Yields the parts of a training row's JSON, like `jsonParts()`, but faster for its long lists: ids that differ, runs
 * of one mask bit and one version, and zeros between fractions. Each kind of list has its own loop, because a loop over
 * all kinds allocates an object for each fraction. The lists of a row with `columnsOf()` are not made.
 *
 * @param limit - The maximum number of items in a part, at least 1.
 */
export function rowParts(row: Sample, limit: number = defaultLimit): Generator<JsonPart> {
  const columns = columnsOf(row);
  const partsOf = (name: string): Iterable<JsonPart> | undefined => {
    if (!isListName(name)) return undefined;
    if (columns !== undefined) return columnParts[name](columns, limit);
    const list: unknown = row[name];
    return Array.isArray(list) ? rowLists[name](list, limit) : undefined;
  };
  return memberParts(row, { limit, partsOf });
}

const rowLists = {
  tokenIds: differing,
  lossMask: (list: readonly unknown[], limit: number) => repeated(list, limit, endOfBits),
  logprobs: zerosBetween,
  policyVersions: (list: readonly unknown[], limit: number) => repeated(list, limit, endOfNames),
};

function isListName(name: string): name is keyof typeof rowLists {
  return Object.hasOwn(rowLists, name);
}

function* differing(list: readonly unknown[], limit: number): Generator<JsonPart> {
  for (let first = 0; first < list.length; first += limit) {
    yield first === 0 ? "[" : ",";
    const last = Math.min(first + limit, list.length);
    yield { type: "numbers", list: list as readonly number[], first, last };
  }
  yield list.length === 0 ? "[]" : "]";
}

function* repeated(
  list: readonly unknown[],
  limit: number,
  endOfRun: (list: readonly unknown[], start: number, most: number) => number,
): Generator<JsonPart> {
  for (let start = 0; start < list.length;) {
    yield start === 0 ? "[" : ",";
    const item = list[start];
    const most = Math.min(start + limit, list.length);
    const end = endOfRun(list, start, most);
    yield { type: "repeated", text: JSON.stringify(item) ?? "null", count: end - start };
    start = end;
  }
  yield list.length === 0 ? "[]" : "]";
}

/** Returns the end of the run of equal bits. */
function endOfBits(list: readonly unknown[], start: number, most: number): number {
  const bit = list[start];
  let end = start + 1;
  while (end < most && list[end] === bit) end++;
  return end;
}

/**
 * Returns the end of the run of equal names. A separate loop, because a common loop for numbers and strings would check
 * the type of each item.
 */
function endOfNames(list: readonly unknown[], start: number, most: number): number {
  const name = list[start];
  let end = start + 1;
  while (end < most && list[end] === name) end++;
  return end;
}

/** The least number of zeros in a row that are written as one repeated text. */
const shortestRun = 16;

/** The maximum number of fractions in a part. Their text takes longer to make than that of other items. */
const mostFractions = 2048;

function* zerosBetween(list: readonly unknown[], limit: number): Generator<JsonPart> {
  for (let start = 0; start < list.length;) {
    yield start === 0 ? "[" : ",";
    const zerosEnd = endOfZeros(list, start, Math.min(start + limit, list.length));
    if (zerosEnd > start) {
      yield { type: "repeated", text: "0", count: zerosEnd - start };
      start = zerosEnd;
      continue;
    }
    const end = endOfFractions(
      list,
      start,
      Math.min(start + limit, start + mostFractions, list.length),
    );
    yield JSON.stringify(list.slice(start, end)).slice(1, -1);
    start = end;
  }
  yield list.length === 0 ? "[]" : "]";
}

function endOfZeros(list: readonly unknown[], start: number, most: number): number {
  let end = start;
  while (end < most && list[end] === 0) end++;
  return end;
}

/** Returns the end of the fractions before a run of zeros that is long enough for a part of its own. */
function endOfFractions(list: readonly unknown[], start: number, most: number): number {
  let zeroCount = 0;
  for (let end = start; end < most; end++) {
    zeroCount = list[end] === 0 ? zeroCount + 1 : 0;
    if (zeroCount === shortestRun) return end + 1 - shortestRun;
  }
  return most;
}
