import type { LlamaSequence } from "./llama-library.ts";
import type { DrawnId, NextSampling } from "./next-id.ts";
import { optionsToDraw, optionsToScore, drawId, firstCandidates, logprobOf } from "./next-id.ts";

/** Maximum number of ids in one step. A call can be cancelled only between steps. */
const STEP_IDS = 256;

/** A number of candidates above every vocabulary's size. */
const ALL_CANDIDATES = 2 ** 31 - 1;

/**
 * Keeps the computed ids that are a prefix of `ids`, at most `maxCount`, and drops the others. Returns the number of
 * kept ids: 0 if the model's attention cannot drop only the last ids.
 */
export async function keepPrefix(
  sequence: LlamaSequence,
  { ids, maxCount, signal }: { ids: readonly number[]; maxCount: number; signal: AbortSignal },
): Promise<number> {
  signal.throwIfAborted();
  await sequence.adaptStateToTokens(ids.slice(0, maxCount), false);
  return sequence.nextTokenIndex;
}

/** Evaluates ids without drawing, because the next ids are known. */
export async function prefill(
  sequence: LlamaSequence,
  { ids, signal }: { ids: readonly number[]; signal: AbortSignal },
): Promise<void> {
  for (let start = 0; start < ids.length; start += STEP_IDS) {
    signal.throwIfAborted();
    await sequence.controlledEvaluate(ids.slice(start, start + STEP_IDS));
  }
}

/** Evaluates an id, and draws the id after it. */
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
    const generateNext = optionsToDraw(sampling, { random, candidates });
    const [evaluated] = await sequence.controlledEvaluate([[last, { generateNext }]]);
    const drawn = drawId(evaluated, sampling, { random, candidates });
    if (drawn !== undefined) return drawn;
    const computed = sequence.contextTokens;
    await keepPrefix(sequence, { ids: computed, maxCount: computed.length - 1, signal });
    await prefill(sequence, { ids: computed.slice(sequence.nextTokenIndex, -1), signal });
  }
}

/** Returns the logprob of each id from index `from` on, given the ids before it. */
export async function scoreIds(
  sequence: LlamaSequence,
  {
    ids,
    from,
    temperature,
    signal,
  }: { ids: readonly number[]; from: number; temperature: number; signal: AbortSignal },
): Promise<readonly number[]> {
  const start = await keepPrefix(sequence, { ids, maxCount: from - 1, signal });
  await prefill(sequence, { ids: ids.slice(start, from - 1), signal });
  const logprobs: number[] = [];
  for (let first = from - 1; first < ids.length - 1; first += STEP_IDS) {
    signal.throwIfAborted();
    const known = ids.slice(first + 1, first + 1 + STEP_IDS);
    const evaluated = await sequence.controlledEvaluate(
      known.map((next, index) => [
        ids[first + index] ?? 0,
        { generateNext: optionsToScore(next, temperature) },
      ]),
    );
    logprobs.push(...known.map((id, index) => logprobOf(evaluated[index], id)));
  }
  return logprobs;
}
