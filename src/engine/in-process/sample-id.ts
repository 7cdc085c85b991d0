/** The ids that may be drawn. Neutral values: `topK` -1, `topP` 1 and `minP` 0. */
export interface SamplingFilter {
  /** Number of most likely ids to keep, or -1 for all. */
  readonly topK: number;
  /** Keeps the fewest most likely ids with probabilities that add up to this number, (0, 1]. */
  readonly topP: number;
  /** Minimum probability relative to the most likely id, [0, 1]. */
  readonly minP: number;
}

/**
 * Draws an id with a probability proportional to its weight, among the ids that all filters keep.
 *
 * Each filter applies to the complete distribution, not to the result of another filter. Of equally
 * likely ids the lowest are kept first. `random` is in [0, 1), `total` is the sum of all weights.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/layers/sampler.py (order and meaning of the
 * filters).
 */
export function sampleId(
  weights: Float32Array,
  { total, filter, random }: { total: number; filter: SamplingFilter; random: number },
): number {
  return draw(weights, { ...keptOf(weights, total, filter), random });
}

/** The drawn id, and the ids that it was drawn from. */
interface SampledKept {
  readonly id: number;
  /** All ids that the filters keep and that have a weight above 0, ascending. */
  readonly keptIds: readonly number[];
  /** The sum of the kept ids' weights. */
  readonly keptTotal: number;
}

/** Draws the id that `sampleId()` draws, and returns the kept ids too. */
export function sampleKept(
  weights: Float32Array,
  { total, filter, random }: { total: number; filter: SamplingFilter; random: number },
): SampledKept {
  const kept = keptOf(weights, total, filter);
  const keptIds = listKept(weights, kept.cut);
  return { id: draw(weights, { ...kept, random }), keptIds, keptTotal: kept.total };
}

/** Returns the cut of the filters, and the sum of the weights that they keep. */
function keptOf(
  weights: Float32Array,
  total: number,
  filter: SamplingFilter,
): { readonly total: number; readonly cut: Cut } {
  const cut = cutOf(weights, total, filter);
  if (cut === undefined) return { total, cut: { weight: 0, tieCount: 0 } };
  return { total: sumOfKept(weights, cut), cut };
}

/**
 * The cut of a filter: it keeps the ids with a larger weight than this, and the first `tieCount` ids with exactly this
 * weight.
 */
interface Cut {
  readonly weight: number;
  readonly tieCount: number;
}

function cutOf(
  weights: Float32Array,
  total: number,
  { topK, topP, minP }: SamplingFilter,
): Cut | undefined {
  const keepsAll = (topK === -1 || topK >= weights.length) && topP >= 1 && minP <= 0;
  if (keepsAll) return undefined;
  const descending = weights.toSorted().toReversed();
  const floor = minP * (descending[0] ?? 0);
  const maxCount = topK === -1 ? weights.length : Math.min(topK, weights.length);
  let count = 0;
  let before = 0;
  while (count < maxCount) {
    const weight = descending[count] ?? 0;
    const reached = topP < 1 && before >= topP * total;
    if (count > 0 && (reached || weight < floor || weight === 0)) break;
    before += weight;
    count++;
  }
  const weight = descending[count - 1] ?? 0;
  return { weight, tieCount: count - descending.indexOf(weight) };
}

function sumOfKept(weights: Float32Array, cut: Cut): number {
  let sum = 0;
  let ties = cut.tieCount;
  for (const weight of weights) {
    if (weight > cut.weight || (weight === cut.weight && ties-- > 0)) sum += weight;
  }
  return sum;
}

function listKept(weights: Float32Array, cut: Cut): number[] {
  const ids: number[] = [];
  let ties = cut.tieCount;
  for (const [id, weight] of weights.entries()) {
    if (weight > cut.weight || (weight === cut.weight && ties-- > 0)) ids.push(id);
  }
  return ids;
}

/** Returns the first kept id at which the sum of weights exceeds `random` times the total. */
function draw(
  weights: Float32Array,
  { total, random, cut }: { total: number; random: number; cut: Cut },
): number {
  const goal = random * total;
  let sum = 0;
  let ties = cut.tieCount;
  let last = 0;
  for (let id = 0; id < weights.length; id++) {
    const weight = weights[id] ?? 0;
    if (weight < cut.weight || weight === 0) continue;
    if (weight === cut.weight && ties-- <= 0) continue;
    last = id;
    sum += weight;
    if (sum > goal) return id;
  }
  // Rounding left the sum slightly below the goal.
  return last;
}

/** Returns the most likely id, or the lowest of several. */
export function mostLikelyId(logits: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logits.length; id++) {
    if ((logits[id] ?? 0) > (logits[best] ?? 0)) best = id;
  }
  return best;
}
