import { type JsonPart, memberParts } from "../internal/json-pieces.ts";
import type { Sample } from "../trajectory/sample.ts";

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
  lossMask: repeated,
  logprobs: zerosBetween,
  policyVersions: repeated,
};

function* differing(list: readonly unknown[], limit: number): Generator<JsonPart> {
  for (let first = 0; first < list.length; first += limit) {
    yield first === 0 ? "[" : ",";
    const last = Math.min(first + limit, list.length);
    yield { type: "numbers", list: list as readonly number[], first, last };
  }
  yield list.length === 0 ? "[]" : "]";
}

function* repeated(list: readonly unknown[], limit: number): Generator<JsonPart> {
  for (let start = 0; start < list.length;) {
    yield start === 0 ? "[" : ",";
    const item = list[start];
    const most = Math.min(start + limit, list.length);
    let end = start + 1;
    while (end < most && list[end] === item) end++;
    yield { type: "repeated", text: JSON.stringify(item) ?? "null", count: end - start };
    start = end;
  }
  yield list.length === 0 ? "[]" : "]";
}

/** How many zeros are spelled once. */
const shortestRun = 16;

/** A fraction's text takes longer to make than any other item's. */
const mostFractions = 2048;

function* zerosBetween(list: readonly unknown[], limit: number): Generator<JsonPart> {
  for (let start = 0; start < list.length;) {
    yield start === 0 ? "[" : ",";
    const most = Math.min(start + limit, list.length);
    let end = start;
    while (end < most && list[end] === 0) end++;
    if (end > start) {
      yield { type: "repeated", text: "0", count: end - start };
    } else {
      const last = Math.min(start + mostFractions, most);
      for (let zeros = 0; end < last && zeros < shortestRun; end++) {
        zeros = list[end] === 0 ? zeros + 1 : 0;
        if (zeros === shortestRun) end -= shortestRun;
      }
      yield JSON.stringify(list.slice(start, end)).slice(1, -1);
    }
    start = end;
  }
  yield list.length === 0 ? "[]" : "]";
}
