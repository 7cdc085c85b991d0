import type { LogitRow } from "../logit-row.ts";
import { mostLikelyId, sampleId } from "../../in-process/sample-id.ts";
import { seededRandomNumbers } from "../../in-process/random-numbers.ts";
import type { Finish } from "../../engine.ts";
import type { GenerateCall, ScoreCall, TokenMessage, ThreadReply } from "./thread-message.ts";

/** The result of a row of logits. */
export type GoalStep =
  /** The sequence continues with this id. */
  | { readonly type: "append"; readonly id: number; readonly message?: TokenMessage }
  /** The sequence continues with the next given id. */
  | { readonly type: "advance" }
  | { readonly type: "finish"; readonly reply: ThreadReply };

/** The purpose of a sequence: sampling or scoring. */
export interface TokenGoal {
  readonly key: number;
  /** The given ids. */
  readonly ids: Int32Array;
  /** Maximum number of new ids. */
  readonly maxNewIds: number;
  /**
   * Number of given ids at the end that need not be computed, because no logits after them are
   * requested.
   */
  readonly uncomputedCount: number;
  /** The index of the first id with requested logits. */
  readonly firstLogit: number;
  /** Receives the logits after the id at `index`. Called once for each index, in order. */
  take(row: LogitRow, index: number, context: { readonly cachedTokenCount: number }): GoalStep;
  /** Returns the tokens sampled so far. Absent if a part of the result is useless. */
  readonly cutShort?: () => ThreadReply;
}

/** Creates a goal that samples a turn. `modelEndIds` end it as well as the request's stop ids. */
export function generationGoal(call: GenerateCall, modelEndIds: readonly number[]): TokenGoal {
  const { key, promptIds, sampling, maxNewTokens, streams } = call;
  const stopIds = new Set([...call.stopTokenIds, ...modelEndIds]);
  const random = seededRandomNumbers(sampling.seed, call.sessionId);
  const outputIds: number[] = [];
  const logprobs: number[] = [];
  let cachedCount = 0;
  const toReply = (finish: Finish): ThreadReply => {
    const turn = { outputIds, logprobs, finish, cachedTokenCount: cachedCount };
    return { type: "generated", key, ...turn };
  };
  return {
    key,
    ids: promptIds,
    maxNewIds: maxNewTokens,
    uncomputedCount: 0,
    firstLogit: promptIds.length - 1,
    take(row, index, { cachedTokenCount }) {
      const probabilities = row.softmax(softmaxTemperature(sampling.temperature));
      const { exponentials, sum } = probabilities;
      const id =
        sampling.temperature === 0
          ? mostLikelyId(row.logits)
          : sampleId(exponentials, { total: sum, filter: sampling, random: random(index + 1) });
      const logprob = toLogprob(row, { id, temperature: sampling.temperature, ...probabilities });
      if (!Number.isFinite(logprob)) return { type: "finish", reply: notANumber(key, index) };
      outputIds.push(id);
      logprobs.push(logprob);
      const stops = stopIds.has(id);
      cachedCount = cachedTokenCount;
      if (!stops && outputIds.length < maxNewTokens) {
        const message = { type: "sampled", key, id, logprob } as const;
        return { type: "append", id, ...(streams && { message }) };
      }
      const reply = toReply(stops ? { type: "stop", matched: id } : { type: "length" });
      return { type: "finish", reply };
    },
    cutShort: () => toReply({ type: "length" }),
  };
}

/** Creates a goal that scores given ids. */
export function scoringGoal({ key, ids, from, temperature }: ScoreCall): TokenGoal {
  const logprobs: number[] = [];
  return {
    key,
    ids,
    maxNewIds: 0,
    uncomputedCount: 1,
    firstLogit: from - 1,
    take(row, index) {
      const id = ids[index + 1] ?? 0;
      const probabilities = row.softmax(softmaxTemperature(temperature));
      const logprob = toLogprob(row, { id, temperature, ...probabilities });
      if (!Number.isFinite(logprob)) return { type: "finish", reply: notANumber(key, index) };
      logprobs.push(logprob);
      if (index + 2 < ids.length) return { type: "advance" };
      return { type: "finish", reply: { type: "scored", key, logprobs } };
    },
  };
}

/**
 * Returns the temperature of the softmax. Greedy sampling reports probabilities at temperature 1.
 */
function softmaxTemperature(temperature: number): number {
  return temperature === 0 ? 1 : temperature;
}

/**
 * Returns the natural logarithm of an id's probability, in single precision, at most 0. Sampling
 * and scoring share this function, so that both give the same bits.
 */
function toLogprob(
  { logits }: LogitRow,
  at: { id: number; temperature: number; sum: number; largest: number },
): number {
  const difference = (logits[at.id] ?? NaN) - at.largest;
  const logprob = difference / softmaxTemperature(at.temperature) - Math.log(at.sum);
  return Math.min(0, Math.fround(logprob));
}

function notANumber(key: number, index: number): ThreadReply {
  return {
    type: "failed",
    key,
    code: "engine/nan",
    message:
      `Cannot continue after token ${index}: the model's logits there are not numbers, ` +
      "expected finite weights",
  };
}
