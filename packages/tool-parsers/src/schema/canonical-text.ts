import { isPyDict, isPyList, type PyValue } from "../../../python-values/src/index.ts";
import type { StepBudget } from "../pattern/step-budget.ts";

/**
 * Returns a text that is equal for two values exactly if JSON Schema treats them as equal: `1` and `1.0` are equal,
 * and the order of members does not matter. The time of a comparison grows with the values.
 */
export function canonicalText(value: PyValue, budget?: StepBudget): string {
  budget?.spend();
  if (typeof value === "string") {
    budget?.spend(value.length >>> 5);
    return JSON.stringify(value);
  }
  if (typeof value === "number") {
    return Number.isInteger(value) ? String(BigInt(value)) : String(value);
  }
  if (isPyList(value)) return `[${value.map((item) => canonicalText(item, budget)).join()}]`;
  if (!isPyDict(value)) return String(value);
  const members = [...value].map(
    ([key, member]) => [JSON.stringify(key), canonicalText(member, budget)] as const,
  );
  const sorted = members.toSorted(([left], [right]) => (left < right ? -1 : 1));
  return `{${sorted.map(([key, text]) => `${key}:${text}`).join()}}`;
}
