/** A mean with its 95 % confidence interval. JSON-able. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Tasks behind it. */
  readonly taskCount: number;
}

const resampleCount = 10_000;
const zAt95 = 1.959963984540054;

/**
 * The mean of per-task values with a 95 % confidence interval. Tasks are what is drawn: attempts at
 * one task hang together, so the interval comes from a bootstrap over whole tasks (percentiles of
 * 10,000 resamples, from a fixed seed, so that the same run always gives the same numbers). Where all
 * tasks have the same value a bootstrap would claim certainty; Wilson's interval for that share of as
 * many tasks is given instead.
 *
 * @param values - One value a task, each from 0 to 1 for a share; any numbers for rewards.
 * @returns `undefined` where there are no values.
 */
export function estimateMean(values: readonly number[]): Estimate | undefined {
  const taskCount = values.length;
  if (taskCount === 0) return undefined;
  const value = sum(values) / taskCount;
  const [low, high] = values.every((other) => other === values[0])
    ? wilson(value, taskCount)
    : bootstrap(values);
  return { value, low, high, taskCount };
}

/**
 * The mean of paired differences between two runs, one a task, as `estimateMean()`. Where all are
 * alike, the interval is as wide on both sides as Wilson's for a share of none.
 *
 * @param limit - The largest difference that there can be, either way: 1 between shares.
 */
export function estimateDifference(
  values: readonly number[],
  limit = Infinity,
): Estimate | undefined {
  const taskCount = values.length;
  if (taskCount === 0) return undefined;
  const value = sum(values) / taskCount;
  const half = wilson(0, taskCount)[1];
  const [low, high] = values.every((other) => other === values[0])
    ? [Math.max(-limit, value - half), Math.min(limit, value + half)]
    : bootstrap(values);
  return { value, low, high, taskCount };
}

/** The percentile interval of the mean, over resamples of the values. */
function bootstrap(values: readonly number[]): readonly [low: number, high: number] {
  const source = Float64Array.from(values);
  const random = createRandom(20_240_617);
  const means = new Float64Array(resampleCount);
  for (let resample = 0; resample < resampleCount; resample++) {
    let total = 0;
    for (let draw = 0; draw < source.length; draw++) {
      total += source[Math.floor(random() * source.length)] ?? 0;
    }
    means[resample] = total / source.length;
  }
  means.sort();
  const tail = Math.floor(resampleCount * 0.025);
  return [means[tail] ?? Number.NaN, means[resampleCount - 1 - tail] ?? Number.NaN];
}

/** Wilson's score interval; a value that is no share has no such interval, and gets no width. */
function wilson(share: number, count: number): readonly [low: number, high: number] {
  if (share < 0 || share > 1) return [share, share];
  const z2 = zAt95 ** 2 / count;
  const centre = (share + z2 / 2) / (1 + z2);
  const half = (zAt95 * Math.sqrt((share * (1 - share)) / count + z2 / (4 * count))) / (1 + z2);
  return [share === 0 ? 0 : centre - half, share === 1 ? 1 : centre + half];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * Numbers from 0 up to 1, always the same for a seed.
 *
 * **Source:** mulberry32 by Tommy Ettinger, in the public domain.
 */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
