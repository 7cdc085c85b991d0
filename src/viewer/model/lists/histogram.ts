/**
 * A bin of a histogram: values from `from` up to, but not including, `to`. The last bin includes
 * `to`.
 */
export interface HistogramBin {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly isLast: boolean;
}

/** Returns a readable bin width near `rough`: 1, 2 or 5 times a power of ten. */
function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= rough * 0.999) ?? 10;
  return factor * power;
}

/** Counts values in about `binCount` bins of a round width. Returns no bins without values. */
export function histogram(values: readonly number[], binCount: number): readonly HistogramBin[] {
  const finite = values.filter((value) => Number.isFinite(value));
  if (finite.length === 0) return [];
  let low = Infinity;
  let high = -Infinity;
  for (const value of finite) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const isWhole = finite.every((value) => Number.isInteger(value));
  // If all values are almost equal, the width stays above the rounding error.
  const width = Math.max(high - low, Math.abs(high) * 1e-9, 1e-9);
  const rough = niceStep(width / binCount);
  const step = isWhole ? Math.max(1, rough) : rough;
  const start = Math.floor(low / step) * step;
  const count = Math.max(1, Math.ceil((high - start) / step + (isWhole ? 1e-9 : 0)));
  const edges = Array.from({ length: count + 1 }, (_, index) => round(start + index * step));
  if (isWhole && edges.at(-1)! <= high) edges.push(round(edges.at(-1)! + step));
  const counts = new Array<number>(edges.length - 1).fill(0);
  for (const value of finite) {
    const index = Math.min(Math.floor((value - start) / step + 1e-9), counts.length - 1);
    counts[index]! += 1;
  }
  return counts.map((count, index) => ({
    from: edges[index]!,
    to: edges[index + 1]!,
    count,
    isLast: index === counts.length - 1,
  }));
}

/** Removes the rounding error of repeated additions. */
function round(value: number): number {
  return Number(value.toPrecision(12));
}
