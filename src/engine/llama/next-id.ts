import { RolloutError } from "../../errors.ts";
import { sampleId } from "../in-process/sample-id.ts";
import type { SamplingFilter } from "../in-process/sample-id.ts";
import type { AskedNext, EvaluatedNext } from "./llama-library.ts";

/** How the next id is drawn. */
export interface NextSampling extends SamplingFilter {
  /** 0 takes the most likely. */
  readonly temperature: number;
}

/** A drawn id. */
export interface DrawnId {
  readonly id: number;
  /** Natural logarithm of its probability in the softmax at the temperature; at 1 where that is 0. */
  readonly logprob: number;
}

/**
 * Logits asked for first where a filter is on: nearly always enough. The library hands them over as
 * a map, so all of a large vocabulary would take longer than the model.
 */
const FIRST_CANDIDATES = 256;

/**
 * What to ask the library for so that an id can be drawn. Its own top-k, top-p and min-p are off: it
 * would normalise its probabilities over what they leave.
 *
 * `random` is in [0, 1). The library starts its generator anew for each id, so the seed is made of
 * the id's own random number; one seed for all ids would draw them all from the same quantile.
 */
export function askToDraw(
  sampling: NextSampling,
  { random, candidates }: { random: number; candidates: number },
): AskedNext {
  // llama.cpp takes 2^32 - 1 for "any seed".
  const seed = Math.floor(random * (2 ** 32 - 1));
  const options = toOptions(sampling.temperature, seed);
  const drawsThere = sampling.temperature > 0 && !isFiltered(sampling);
  if (drawsThere) {
    const logits = { filter: { includeSelected: true, includeTop: 1 } } as const;
    return { token: true, logits, totalLogitWeight: true, options };
  }
  return { logits: { filter: { includeTop: candidates } }, totalLogitWeight: true, options };
}

/** What to ask for to learn the logprob of the id that is known to come next. */
export function askToScore(id: number, temperature: number): AskedNext {
  return {
    logits: { filter: { tokens: [id], includeTop: 1 } },
    totalLogitWeight: true,
    options: toOptions(temperature, 0),
  };
}

/** How many logits to ask for: more than there are where all are needed. */
export function firstCandidates({ temperature, topK }: NextSampling): number {
  if (temperature === 0) return 1;
  return topK === -1 ? FIRST_CANDIDATES : topK;
}

function isFiltered({ temperature, topK, topP, minP }: NextSampling): boolean {
  return temperature > 0 && (topK !== -1 || topP < 1 || minP > 0);
}

/** At 0 the library would sort by a slower way, so greedy ones are taken from the softmax at 1. */
function toOptions(temperature: number, seed: number): AskedNext["options"] {
  return { temperature: temperature === 0 ? 1 : temperature, topK: 0, topP: 1, minP: 0, seed };
}

/**
 * Reads the drawn id, or draws it where a filter is on. Undefined where the candidates do not settle
 * what the filters leave: then ask for more.
 *
 * @throws RolloutError `engine/nan` where the model's logits are no numbers.
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
  const least = weights.at(-1) ?? 0;
  const sum = weights.reduce((before, weight) => before + weight, 0);
  const isSettled = hasAll || least < minP || (topP < 1 && sum >= topP * total);
  if (!isSettled) return undefined;
  const index = sampleId(weights, { total, filter: { topK, topP, minP }, random });
  const id = ids[index] ?? 0;
  return { id, logprob: logprobOf(evaluated, id) };
}

/**
 * The logprob of an id that was asked for.
 *
 * @throws RolloutError `engine/nan` where it is none.
 */
export function logprobOf(evaluated: EvaluatedNext | undefined, id: number): number {
  const { logits, totalLogitWeight: total = Number.NaN } = evaluated?.next ?? {};
  const own = logits?.get(id) ?? Number.NaN;
  const logprob = own - largestOf(logits?.values() ?? []) - Math.log(total);
  if (!Number.isFinite(logprob)) throw notNumbers();
  // Rounding may take a certainty beyond 1.
  return Math.min(0, logprob);
}

/** Of any number of values: more than a call takes arguments. */
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
