import { isObject } from "../values/is-object.ts";
import { isSampledLogprob } from "../values/logprob-range.ts";
import { RollingHash, hashIds } from "./rolling-hash.ts";
import type { SampleParts, TurnPart } from "./sample-parts.ts";
import { isTokenId } from "../engine/token-id.ts";
import { isCount, quote, type Violation } from "./violation.ts";

const finishes: readonly unknown[] = ["stop", "length"];

/** Checks a row's turns: their order, their indexes, and their ids against the hashes of the ids sent and returned. */
export function checkTurns(parts: SampleParts): Violation[] {
  const { turns, row } = parts;
  if (turns === undefined) return [];
  const found = [...checkOrder(parts), ...checkTurnIndexes(parts), ...checkHashes(parts)];
  if (turns.length === 0 && row["outcome"] === "completed" && row["segment"] === 0) {
    found.push({ rule: "no-turns", detail: "an episode that completed has no turn" });
  }
  turns.forEach((turn, index) => {
    if (turn === undefined) return;
    if (!finishes.includes(turn["finish"])) {
      const detail = `turns[${index}].finish is ${quote(turn["finish"])}, expected stop or length`;
      found.push({ rule: "finish", detail });
    }
    if (turn.start === turn.end && turn["droppedStopId"] === undefined) {
      const detail = `turns[${index}] has no id that the policy sampled, expected no such turn`;
      found.push({ rule: "turns", detail });
    }
    found.push(...checkDroppedStop(turn, index));
  });
  return found;
}

function checkOrder({ turns, promptLength }: SampleParts): Violation[] {
  const found: Violation[] = [];
  let previousEnd = promptLength ?? 0;
  turns!.forEach((turn, index) => {
    if (turn === undefined) return;
    if (index === 0 && promptLength !== undefined && turn.start !== promptLength) {
      const detail = `the first turn begins at ${turn.start}, expected the prompt's end ${promptLength}`;
      found.push({ rule: "turns", detail });
    } else if (turn.start < previousEnd) {
      const detail = `turns[${index}] begins at ${turn.start}, before ${previousEnd}`;
      found.push({ rule: "turns", detail });
    }
    previousEnd = Math.max(previousEnd, turn.end);
  });
  return found;
}

/**
 * Checks the turns' indexes. Within one row they are consecutive. The first row of an episode begins at 0, or at the
 * turn of its fork.
 */
function checkTurnIndexes({ turns, row }: SampleParts): Violation[] {
  const found: Violation[] = [];
  const { forkedFrom } = row;
  const first = isObject(forkedFrom) ? forkedFrom["turnIndex"] : 0;
  let expected = row["segment"] === 0 && isCount(first) ? first : undefined;
  turns!.forEach((turn, index) => {
    const turnIndex = turn?.["turnIndex"];
    if (turn !== undefined && (!isCount(turnIndex) || turnIndex !== (expected ?? turnIndex))) {
      const wanted = expected === undefined ? "a whole number" : expected;
      const detail = `turns[${index}].turnIndex is ${quote(turnIndex)}, expected ${wanted}`;
      found.push({ rule: "turn-index", detail });
    }
    if (expected !== undefined) expected += 1;
    else if (isCount(turnIndex)) expected = turnIndex + 1;
  });
  return found;
}

function checkHashes({ turns, ids }: SampleParts): Violation[] {
  if (ids === undefined) return [];
  const found: Violation[] = [];
  const hashBefore = prefixHasher(ids);
  turns!.forEach((turn, index) => {
    if (turn === undefined) return;
    const { promptHash, outputHash, droppedStopId } = turn;
    for (const [field, hash] of Object.entries({ promptHash, outputHash })) {
      if (typeof hash === "string" && /^[0-9a-f]{16}$/.test(hash)) continue;
      const detail = `turns[${index}].${field} is ${quote(hash)}, expected 16 hexadecimal digits`;
      found.push({ rule: "hashes", detail });
    }
    const sent = hashBefore(turn.start);
    if (sent !== undefined && sent !== promptHash) {
      found.push({
        rule: "request-is-ledger",
        detail: `the ids before turns[${index}] are not the ids that the engine was sent`,
      });
    }
    const sampled = ids.slice(turn.start, turn.end);
    if (droppedStopId !== undefined) sampled.push(droppedStopId);
    if (sampled.every((id) => isTokenId(id)) && hashIds(sampled) !== outputHash) {
      found.push({
        rule: "trained-is-sampled",
        detail: `the ids of turns[${index}] are not the ids that the engine returned`,
      });
    }
  });
  return found;
}

/**
 * Returns a function that hashes prefixes. Rising ends hash each id once. The function returns `undefined` if an id is
 * invalid.
 */
function prefixHasher(ids: readonly unknown[]): (end: number) => string | undefined {
  const broken = ids.findIndex((id) => !isTokenId(id));
  const hash = new RollingHash();
  let hashed = 0;
  return (end) => {
    if (broken >= 0 && end > broken) return undefined;
    if (end < hashed) return hashIds(ids.slice(0, end) as number[]);
    hash.append(ids.slice(hashed, end) as number[]);
    hashed = end;
    return hash.digest();
  };
}

/** Checks that a dropped stop id has its logprob and version. */
function checkDroppedStop(turn: TurnPart, index: number): Violation[] {
  const { droppedStopId: id, droppedStopLogprob: logprob, droppedStopVersion: version } = turn;
  if ([id, logprob, version].every((value) => value === undefined)) return [];
  const wrong: string[] = [];
  if (!isTokenId(id)) wrong.push(`droppedStopId is ${quote(id)}`);
  if (!isSampledLogprob(logprob)) wrong.push(`droppedStopLogprob is ${quote(logprob)}`);
  if (typeof version !== "string") wrong.push(`droppedStopVersion is ${quote(version)}`);
  if (turn["finish"] !== "stop") wrong.push("the turn did not end with a stop");
  return wrong.map((detail) => ({ rule: "dropped-stop", detail: `turns[${index}]: ${detail}` }));
}
