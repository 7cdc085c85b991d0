import type { Estimate, IntervalMethod } from "./interval.ts";

/** The names of the methods for people. */
const names: Readonly<Record<IntervalMethod, string>> = {
  "clopper-pearson": "Clopper-Pearson",
  "korn-graubard": "Korn-Graubard",
  "student-t": "Student's t",
  "all-alike": "all tasks went alike",
  none: "all tasks went alike",
};

/** Describes an interval with its method, such as `0.478 to 1.000, Clopper-Pearson`. */
export function describeInterval(
  { low, high, method }: Estimate,
  format: (value: number) => string = (value) => value.toFixed(3),
): string {
  if (low === undefined || high === undefined) return `–, ${names[method]}`;
  return `${format(low)} to ${format(high)}, ${names[method]}`;
}
