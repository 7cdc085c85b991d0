import type { LlamaSequence } from "./llama-library.ts";
import type { DrawnId, NextSampling } from "./next-id.ts";
import { askToDraw, askToScore, drawId, firstCandidates, logprobOf } from "./next-id.ts";

/** Ids computed at once: a call can be cancelled only in between. */
const STEP_IDS = 256;

/** More logits than there are ids: all of them. */
const ALL_CANDIDATES = 2 ** 31 - 1;

/**
 * Forgets what does not begin the ids, and what exceeds `most` of them. Returns how many are there.
 * It can be none where the model's attention does not allow going back.
 */
export async function forgetOthers(
  sequence: LlamaSequence,
  { ids, most, signal }: { ids: readonly number[]; most: number; signal: AbortSignal },
): Promise<number> {
  signal.throwIfAborted();
  await sequence.adaptStateToTokens(ids.slice(0, most), false);
  return sequence.nextTokenIndex;
}

/** Computes ids whose successors are known. */
export async function prefill(
  sequence: LlamaSequence,
  { ids, signal }: { ids: readonly number[]; signal: AbortSignal },
): Promise<void> {
  for (let start = 0; start < ids.length; start += STEP_IDS) {
    signal.throwIfAborted();
    await sequence.controlledEvaluate(ids.slice(start, start + STEP_IDS));
  }
}

/** Computes an id and draws the one behind it. */
export async function drawNext(
  sequence: LlamaSequence,
  {
    last,
    sampling,
    random,
    signal,
  }: { last: number; sampling: NextSampling; random: number; signal: AbortSignal },
): Promise<DrawnId> {
  for (let candidates = firstCandidates(sampling); ; candidates = ALL_CANDIDATES) {
    signal.throwIfAborted();
    const generateNext = askToDraw(sampling, { random, candidates });
    const [evaluated] = await sequence.controlledEvaluate([[last, { generateNext }]]);
    const drawn = drawId(evaluated, sampling, { random, candidates });
    if (drawn !== undefined) return drawn;
    const held = sequence.contextTokens;
    await forgetOthers(sequence, { ids: held, most: held.length - 1, signal });
    await prefill(sequence, { ids: held.slice(sequence.nextTokenIndex, -1), signal });
  }
}

/** The logprobs of the ids from an index on, each behind those before it. */
export async function scoreIds(
  sequence: LlamaSequence,
  {
    ids,
    from,
    temperature,
    signal,
  }: { ids: readonly number[]; from: number; temperature: number; signal: AbortSignal },
): Promise<readonly number[]> {
  const start = await forgetOthers(sequence, { ids, most: from - 1, signal });
  await prefill(sequence, { ids: ids.slice(start, from - 1), signal });
  const logprobs: number[] = [];
  for (let first = from - 1; first < ids.length - 1; first += STEP_IDS) {
    signal.throwIfAborted();
    const known = ids.slice(first + 1, first + 1 + STEP_IDS);
    const evaluated = await sequence.controlledEvaluate(
      known.map((next, index) => [
        ids[first + index] ?? 0,
        { generateNext: askToScore(next, temperature) },
      ]),
    );
    logprobs.push(...known.map((id, index) => logprobOf(evaluated[index], id)));
  }
  return logprobs;
}
