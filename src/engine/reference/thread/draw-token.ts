import type { CheckedSampling } from "../../in-process/check-request.ts";
import { bestIds } from "../../in-process/best-ids.ts";
import { mostLikelyId, sampleId, sampleKept } from "../../in-process/sample-id.ts";
import type { LogitRow, SoftmaxRow } from "../logit-row.ts";
import type { TurnColumns } from "./turn-columns.ts";

/** A drawn id with its logprob, which is not finite if the logits are not numbers. */
interface DrawnToken {
  readonly id: number;
  readonly logprob: number;
}

/**
 * Draws the next id, and adds the rows of the columns `keptTokens` and `topLogprobs`. The logprobs are those before
 * top-k, top-p and min-p, or over the kept ids with the column `keptTokens`.
 */
export function drawToken(
  row: LogitRow,
  {
    sampling,
    random,
    columns,
  }: { sampling: CheckedSampling; random: number; columns: TurnColumns | undefined },
): DrawnToken {
  const { temperature } = sampling;
  const { specs = {} } = columns ?? {};
  const softmax = row.softmax(softmaxTemperature(temperature));
  const keeps = specs.keptTokens !== undefined;
  const { id, keptIds, sum } = draw(row, softmax, { sampling, random, keeps });
  const { largest } = softmax;
  const logprobOf = (each: number): number =>
    toLogprob(row, { id: each, temperature, sum, largest });
  if (keptIds !== undefined) columns?.addKept(keptIds);
  if (specs.topLogprobs !== undefined) {
    const { count } = specs.topLogprobs;
    const { logits } = row;
    const ids = keptIds?.slice(0, count) ?? bestIds(logits, Math.min(count, logits.length));
    columns?.addTop(ids, ids.map(logprobOf));
  }
  return { id, logprob: logprobOf(id) };
}

/** Draws an id. `sum` is the sum of the weights of which the id's probability is a share. */
function draw(
  { logits }: LogitRow,
  { exponentials, sum }: SoftmaxRow,
  { sampling, random, keeps }: { sampling: CheckedSampling; random: number; keeps: boolean },
): { readonly id: number; readonly sum: number; readonly keptIds?: readonly number[] } {
  const drawing = { total: sum, filter: sampling, random };
  if (sampling.temperature === 0) {
    const id = mostLikelyId(logits);
    return keeps ? { id, sum: exponentials[id]!, keptIds: [id] } : { id, sum };
  }
  if (!keeps) return { id: sampleId(exponentials, drawing), sum };
  const { id, keptIds, keptTotal } = sampleKept(exponentials, drawing);
  // Sorting keeps the order of equals, the lower id first.
  return { id, sum: keptTotal, keptIds: keptIds.toSorted((a, b) => logits[b]! - logits[a]!) };
}

/**
 * Returns the temperature of the softmax. Greedy sampling reports probabilities at temperature 1.
 */
export function softmaxTemperature(temperature: number): number {
  return temperature === 0 ? 1 : temperature;
}

/**
 * Returns the natural logarithm of an id's probability, in single precision, at most 0. Sampling
 * and scoring share this function, so that both give the same bits.
 */
export function toLogprob(
  { logits }: LogitRow,
  at: { id: number; temperature: number; sum: number; largest: number },
): number {
  const difference = (logits[at.id] ?? NaN) - at.largest;
  const logprob = difference / softmaxTemperature(at.temperature) - Math.log(at.sum);
  return Math.min(0, Math.fround(logprob));
}
