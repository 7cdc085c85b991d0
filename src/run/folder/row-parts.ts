import { type JsonPart, memberParts } from "../../json/json-pieces.ts";
import type { Sample } from "../../trajectory/sample.ts";

/**
 * The parts of a training row's JSON. As `jsonParts()` gives them, but for its long lists, of which it is known what
 * they mostly hold: ids that differ, stretches of one mask and one version, zeros between fractions. Each kind of list
 * has a loop of its own, for one that reads lists of all kinds makes an object of each fraction.
 *
 * @param limit - Items that a part may hold, at least 1.
 */
export function rowParts(row: Sample, limit?: number): Generator<JsonPart> {
  return memberParts({ ...row }, { lists: rowLists, ...(limit !== undefined && { limit }) });
}

const rowLists = {
  tokenIds: differing,
  lossMask: (list: readonly unknown[], limit: number) => repeated(list, limit, endOfBits),
  logprobs: zerosBetween,
  policyVersions: (list: readonly unknown[], limit: number) => repeated(list, limit, endOfNames),
};

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

/** Where the item is no longer repeated. */
function endOfBits(list: readonly unknown[], start: number, most: number): number {
  const bit = list[start];
  let end = start + 1;
  while (end < most && list[end] === bit) end++;
  return end;
}

/** The same, once more: one loop that compares numbers and texts asks each time which they are. */
function endOfNames(list: readonly unknown[], start: number, most: number): number {
  const name = list[start];
  let end = start + 1;
  while (end < most && list[end] === name) end++;
  return end;
}

/** How many zeros are spelled once. */
const shortestRun = 16;

/** A fraction's text takes longer to make than any other item's. */
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

/** Where zeros come that are worth a part of their own. */
function endOfFractions(list: readonly unknown[], start: number, most: number): number {
  let zeroCount = 0;
  for (let end = start; end < most; end++) {
    zeroCount = list[end] === 0 ? zeroCount + 1 : 0;
    if (zeroCount === shortestRun) return end + 1 - shortestRun;
  }
  return most;
}
