import { RolloutError } from "../../errors.ts";
import { sampleId } from "../in-process/sample-id.ts";
import type { SamplingFilter } from "../in-process/sample-id.ts";
import type { NextOptions, EvaluatedNext } from "./llama-library.ts";

/** The parameters for drawing the next id. */
export interface NextSampling extends SamplingFilter {
  /** The temperature. At 0, the most likely id is taken. */
  readonly temperature: number;
}

/** A drawn id. */
export interface DrawnId {
  readonly id: number;
  /** Natural logarithm of the id's probability in the softmax at the temperature, or at 1 if the temperature is 0. */
  readonly logprob: number;
}

/**
 * Number of logits to request first if a filter is on. This number is nearly always enough. The library returns them as
 * a map, so requesting all logits of a large vocabulary would take longer than the model.
 */
const FIRST_CANDIDATES = 256;

/**
 * Returns the query for drawing an id. The library's own top-k, top-p and min-p stay off, because the library would
 * normalise probabilities over the ids that these filters keep.
 *
 * `random` is in [0, 1). The library restarts its generator for each id, so the seed is made from the id's own random
 * number. One seed for all ids would draw them all from the same quantile.
 */
export function optionsToDraw(
  sampling: NextSampling,
  { random, candidates }: { random: number; candidates: number },
): NextOptions {
  // 2^32 - 1 means "any seed" to llama.cpp.
  const seed = Math.floor(random * (2 ** 32 - 1));
  const options = toOptions(sampling.temperature, seed);
  const drawsThere = sampling.temperature > 0 && !isFiltered(sampling);
  if (drawsThere) {
    const logits = { filter: { includeSelected: true, includeTop: 1 } } as const;
    return { token: true, logits, totalLogitWeight: true, options };
  }
  return { logits: { filter: { includeTop: candidates } }, totalLogitWeight: true, options };
}

/** Returns the query for the logprob of a known next id. */
export function optionsToScore(id: number, temperature: number): NextOptions {
  return {
    logits: { filter: { tokens: [id], includeTop: 1 } },
    totalLogitWeight: true,
    options: toOptions(temperature, 0),
  };
}

/** Returns the number of logits to request first. */
export function firstCandidates({ temperature, topK }: NextSampling): number {
  if (temperature === 0) return 1;
  return topK === -1 ? FIRST_CANDIDATES : topK;
}

function isFiltered({ temperature, topK, topP, minP }: NextSampling): boolean {
  return temperature > 0 && (topK !== -1 || topP < 1 || minP > 0);
}

/**
 * Returns the library's options. Its sampler is slow at temperature 0, so greedy ids are read from
 * the softmax at 1.
 */
function toOptions(temperature: number, seed: number): NextOptions["options"] {
  return { temperature: temperature === 0 ? 1 : temperature, topK: 0, topP: 1, minP: 0, seed };
}

/**
 * Reads the drawn id, or draws it if a filter is on. Returns `undefined` if the filters may keep
 * ids that are not among the candidates; request more candidates then.
 *
 * @throws RolloutError `engine/nan` if the model's logits are not numbers.
 */
export function drawId(
  evaluated: EvaluatedNext | undefined,
  sampling: NextSampling,
  { random, candidates }: { random: number; candidates: number },
): DrawnId | undefined {
  if (!isFiltered(sampling)) {
    const { token, logits: top } = evaluated?.next ?? {};
    const id = sampling.temperature > 0 ? token : top?.keys().next().value;
    if (id === null || id === undefined) throw notNumbers();
    return { id, logprob: logprobOf(evaluated, id) };
  }
  const { logits, totalLogitWeight: total = Number.NaN } = evaluated?.next ?? {};
  const ids = [...(logits?.keys() ?? [])];
  const values = [...(logits?.values() ?? [])];
  const largest = largestOf(values);
  const weights = Float32Array.from(values, (value) => Math.exp(value - largest));
  if (!(total > 0)) throw notNumbers();
  const { topK, topP, minP } = sampling;
  const hasAll = ids.length < candidates || (topK !== -1 && topK <= candidates);
  const smallest = weights.at(-1) ?? 0;
  const sum = weights.reduce((before, weight) => before + weight, 0);
  const isSettled = hasAll || smallest < minP || (topP < 1 && sum >= topP * total);
  if (!isSettled) return undefined;
  const index = sampleId(weights, { total, filter: { topK, topP, minP }, random });
  const id = ids[index] ?? 0;
  return { id, logprob: logprobOf(evaluated, id) };
}

/**
 * Returns the logprob of an id of the query.
 *
 * @throws RolloutError `engine/nan` if it is not a number.
 */
export function logprobOf(evaluated: EvaluatedNext | undefined, id: number): number {
  const { logits, totalLogitWeight: total = Number.NaN } = evaluated?.next ?? {};
  const own = logits?.get(id) ?? Number.NaN;
  const logprob = own - largestOf(logits?.values() ?? []) - Math.log(total);
  if (!Number.isFinite(logprob)) throw notNumbers();
  // Rounding can lift the logarithm of a probability of 1 above 0.
  return Math.min(0, logprob);
}

/** Returns the largest value. `Math.max(...values)` cannot take a complete vocabulary. */
function largestOf(values: Iterable<number>): number {
  let largest = -Infinity;
  for (const value of values) largest = Math.max(largest, value);
  return largest;
}

function notNumbers(): RolloutError {
  return new RolloutError(
    "engine/nan",
    "Cannot sample: the model's logits are not numbers, expected finite ones",
  );
}
