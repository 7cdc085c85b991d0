import { isSampledLogprob } from "../values/logprob-range.ts";
import type { CheckedPart, ColumnProblem, ColumnsWanted, PausingCheck } from "./column-problem.ts";
import { decodeRagged, type RaggedRows } from "./ragged-rows.ts";

/** Number of rows that are checked without a pause. */
const rowsAtOnce = 2048;

/** The largest id for which a list with an entry for each id is made. */
const largestListed = 2 ** 22;

/**
 * Checks rows of kept tokens or of top logprobs: their sizes, ids of the vocabulary that differ within a row, the
 * sampled token in its set of kept tokens, and logprobs in falling order.
 */
export function* checkRagged(
  name: "keptTokens" | "topLogprobs",
  part: CheckedPart,
  wanted: ColumnsWanted,
): PausingCheck {
  const { specs, vocabularySize } = wanted;
  const isKept = name === "keptTokens";
  const most = isKept ? specs.keptTokens!.maxCount : specs.topLogprobs!.count;
  const decoded = decode(name, part);
  if ("problem" in decoded) return decoded;
  const { counts, ids, logprobs } = decoded;
  const foreign = ids.findIndex((id) => id < 0 || id >= (vocabularySize ?? Infinity));
  if (foreign >= 0) {
    const problem = `column ${name} has the id ${ids[foreign]}`;
    return { problem, expected: `ids of the vocabulary, below ${vocabularySize ?? 2 ** 31}` };
  }
  const isRepeated = openStamps(ids);
  let place = 0;
  for (const [row, count] of counts.entries()) {
    if (row % rowsAtOnce === 0) yield;
    const at = `row ${row + part.start} of column ${name}`;
    if (count < 1 || count > most) {
      return { problem: `${at} has ${count} ids`, expected: `1 to ${most}` };
    }
    const sampled = wanted.sampledIds[row + part.start];
    let hasSampled = false;
    for (let index = place; index < place + count; index++) {
      const id = ids[index]!;
      hasSampled ||= id === sampled;
      if (isRepeated(id, row)) {
        return { problem: `${at} has the id ${id} twice`, expected: "different ids" };
      }
      if (logprobs === undefined) continue;
      if (!isSampledLogprob(logprobs[index])) {
        const problem = `${at} has the logprob ${logprobs[index]}`;
        return { problem, expected: "a logarithm, at most 0" };
      }
      if (index > place && logprobs[index]! > logprobs[index - 1]!) {
        return { problem: `${at} has a higher logprob after a lower one`, expected: "best first" };
      }
    }
    if (isKept && !hasSampled) {
      return { problem: `${at} lacks the sampled id ${sampled}`, expected: "a set that has it" };
    }
    place += count;
  }
  return undefined;
}

function decode(
  name: "keptTokens" | "topLogprobs",
  { bytes, rows }: CheckedPart,
): RaggedRows | ColumnProblem {
  try {
    return decodeRagged(bytes, { rows, hasLogprobs: name === "topLogprobs" });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { problem: `column ${name} cannot be read (${error.message})`, expected: "its rows" };
  }
}

/** Returns a function that is true for an id that it was called with before for the same row. */
function openStamps(ids: Int32Array): (id: number, row: number) => boolean {
  let largest = 0;
  for (const id of ids) if (id > largest) largest = id;
  if (largest <= largestListed) {
    const stamps = new Uint32Array(largest + 1);
    return (id, row) => {
      if (stamps[id] === row + 1) return true;
      stamps[id] = row + 1;
      return false;
    };
  }
  const rows = new Map<number, number>();
  return (id, row) => {
    if (rows.get(id) === row) return true;
    rows.set(id, row);
    return false;
  };
}
