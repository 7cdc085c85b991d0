import { parties } from "../errors.ts";
import { hashIds } from "./rolling-hash.ts";

/** One broken invariant. */
export interface Violation {
  /** The rule's name, stable for scripts. */
  readonly rule: string;
  readonly detail: string;
}

/** A row as read from a file: nothing about it is known yet. */
type Row = Readonly<Record<string, unknown>>;

interface Turn {
  readonly start: number;
  readonly end: number;
  readonly finish: string;
  readonly promptHash?: string;
  readonly outputHash?: string;
  readonly droppedStopId?: number;
}

/** Rounding in the engine may lift the logarithm of a probability of 1 by this much. */
const logprobTolerance = 1e-6;

const outcomes = ["completed", "truncated", "failed"];
const finishes = ["stop", "length"];

/**
 * Checks one row of samples against the invariants that can be seen in it: shapes, the mask against
 * the turns, logprobs and policy versions against the mask, the ids against the hashes that were
 * taken when they were sent and returned, and reward and failure against the outcome.
 *
 * @returns every violation found; none for a sound row.
 */
export function verifySample(row: unknown): readonly Violation[] {
  if (!isRow(row)) return [{ rule: "shape", detail: "the line is not a JSON object" }];
  const shape = [...checkIdentity(row), ...checkArrays(row), ...checkTurnShapes(row)];
  const ends = checkEnd(row);
  if (shape.length > 0) return [...shape, ...ends];
  return [
    ...checkTurns(row),
    ...checkMask(row),
    ...checkLogprobs(row),
    ...checkVersions(row),
    ...ends,
  ];
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function checkIdentity(row: Row): Violation[] {
  const found: Violation[] = [];
  if (row["format"] !== 1) {
    found.push({
      rule: "format",
      detail: `format is ${JSON.stringify(row["format"])}, expected 1`,
    });
  }
  for (const field of ["rolloutId", "groupId", "taskId", "stopReason"]) {
    if (typeof row[field] !== "string") {
      found.push({ rule: "shape", detail: `${field} is missing or no text` });
    }
  }
  if (!isCount(row["segment"])) found.push({ rule: "shape", detail: "segment is no whole number" });
  return found;
}

function checkArrays(row: Row): Violation[] {
  const found: Violation[] = [];
  const ids = row["tokenIds"];
  if (!Array.isArray(ids)) return [{ rule: "shape", detail: "tokenIds is missing or no list" }];
  const badId = ids.findIndex((id) => !isCount(id));
  if (badId >= 0) {
    found.push({
      rule: "token-ids",
      detail: `tokenIds[${badId}] is ${JSON.stringify(ids[badId])}`,
    });
  }
  for (const field of ["lossMask", "logprobs", "policyVersions"]) {
    const values = row[field];
    if (!Array.isArray(values)) {
      found.push({ rule: "shape", detail: `${field} is missing or no list` });
    } else if (values.length !== ids.length) {
      found.push({
        rule: "length",
        detail: `${field} has ${values.length} entries for ${ids.length} token ids`,
      });
    }
  }
  const promptLength = row["promptLength"];
  if (!isCount(promptLength) || promptLength < 1 || promptLength > ids.length) {
    found.push({
      rule: "prompt-length",
      detail: `promptLength is ${JSON.stringify(promptLength)} for ${ids.length} token ids`,
    });
  }
  return found;
}

function checkTurnShapes(row: Row): Violation[] {
  const turns = row["turns"];
  if (!Array.isArray(turns)) return [{ rule: "shape", detail: "turns is missing or no list" }];
  return turns.flatMap((turn: unknown, index) => {
    if (!isRow(turn) || !isCount(turn["start"]) || !isCount(turn["end"])) {
      return [{ rule: "shape", detail: `turns[${index}] has no start and end` }];
    }
    if (!finishes.includes(turn["finish"] as string)) {
      const finish = JSON.stringify(turn["finish"]);
      return [{ rule: "shape", detail: `turns[${index}].finish is ${finish}` }];
    }
    return [];
  });
}

function checkTurns(row: Row): Violation[] {
  const ids = row["tokenIds"] as number[];
  const turns = row["turns"] as Turn[];
  const found: Violation[] = [];
  let previousEnd = row["promptLength"] as number;
  turns.forEach((turn, index) => {
    const { start, end } = turn;
    if (start < previousEnd || end < start || end > ids.length) {
      found.push({
        rule: "turns",
        detail: `turns[${index}] is ${start} to ${end}, expected within ${previousEnd} to ${ids.length}`,
      });
      return;
    }
    if (index === 0 && start !== row["promptLength"]) {
      found.push({
        rule: "turns",
        detail: `the first turn begins at ${start}, expected the prompt's end ${String(row["promptLength"])}`,
      });
    }
    previousEnd = end;
    found.push(...checkHashes(turn, index, ids));
  });
  return found;
}

function checkHashes(turn: Turn, index: number, ids: readonly number[]): Violation[] {
  const found: Violation[] = [];
  if (turn.promptHash !== undefined && hashIds(ids.slice(0, turn.start)) !== turn.promptHash) {
    found.push({
      rule: "request-is-ledger",
      detail: `the ids before turns[${index}] are not the ids that the engine was sent`,
    });
  }
  const sampled = ids.slice(turn.start, turn.end);
  if (turn.droppedStopId !== undefined) sampled.push(turn.droppedStopId);
  if (turn.outputHash !== undefined && hashIds(sampled) !== turn.outputHash) {
    found.push({
      rule: "trained-is-sampled",
      detail: `the ids of turns[${index}] are not the ids that the engine returned`,
    });
  }
  return found;
}

function checkMask(row: Row): Violation[] {
  const mask = row["lossMask"] as unknown[];
  const expected = new Array<number>(mask.length).fill(0);
  for (const { start, end } of row["turns"] as Turn[]) expected.fill(1, start, end);
  const wrong = mask.findIndex((bit, index) => bit !== expected[index]);
  if (wrong < 0) return [];
  return [
    {
      rule: "mask",
      detail: `lossMask[${wrong}] is ${JSON.stringify(mask[wrong])}, expected ${expected[wrong]} by the turns`,
    },
  ];
}

function checkLogprobs(row: Row): Violation[] {
  const mask = row["lossMask"] as unknown[];
  const logprobs = row["logprobs"] as unknown[];
  const wrong = logprobs.findIndex((logprob, index) =>
    mask[index] === 1
      ? typeof logprob !== "number" || !Number.isFinite(logprob) || logprob > logprobTolerance
      : logprob !== 0,
  );
  if (wrong < 0) return [];
  const expected = mask[wrong] === 1 ? "a number of at most 0" : "0 where the mask is 0";
  return [
    {
      rule: "logprobs",
      detail: `logprobs[${wrong}] is ${JSON.stringify(logprobs[wrong])}, expected ${expected}`,
    },
  ];
}

function checkVersions(row: Row): Violation[] {
  const mask = row["lossMask"] as unknown[];
  const versions = row["policyVersions"] as unknown[];
  const wrong = versions.findIndex(
    (version, index) => typeof version !== "string" || (mask[index] !== 1 && version !== ""),
  );
  if (wrong < 0) return [];
  return [
    {
      rule: "policy-versions",
      detail: `policyVersions[${wrong}] is ${JSON.stringify(versions[wrong])}, expected text, and "" where the mask is 0`,
    },
  ];
}

function checkEnd(row: Row): Violation[] {
  const found: Violation[] = [];
  const { outcome, reward, failure } = row;
  if (!outcomes.includes(outcome as string)) {
    found.push({ rule: "outcome", detail: `outcome is ${JSON.stringify(outcome)}` });
  }
  if (reward !== undefined && (typeof reward !== "number" || !Number.isFinite(reward))) {
    found.push({
      rule: "reward",
      detail: `reward is ${JSON.stringify(reward)}, expected a number, or no such field`,
    });
  }
  if (outcome === "failed") {
    if (reward !== undefined) {
      found.push({ rule: "reward", detail: "a failed episode has a reward, expected none" });
    }
    const party = isRow(failure) ? failure["party"] : undefined;
    if (
      !isRow(failure) ||
      !parties.some((known) => known === party) ||
      typeof failure["code"] !== "string"
    ) {
      found.push({ rule: "failure", detail: "a failed episode does not say which party failed" });
    }
  } else if (failure !== undefined) {
    found.push({ rule: "failure", detail: `an episode that ${String(outcome)} has a failure` });
  }
  return found;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}
