import { sum } from "./sum.ts";

/** A description of several numbers. */
interface DescribedNumbers {
  readonly mean: number;
  readonly median: number;
  /** 95 % of the numbers are not larger. */
  readonly p95: number;
  readonly max: number;
  readonly sum: number;
}

/** Describes numbers. `undefined` if there are none. */
export function describeNumbers(values: readonly number[]): DescribedNumbers | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  const total = sum(sorted);
  return { mean: total / sorted.length, median: at(0.5), p95: at(0.95), max: at(1), sum: total };
}
