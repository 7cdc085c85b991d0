import { iterate } from "./iterate.ts";
import { lessThan } from "./less-than.ts";
import type { PyValue } from "./value.ts";

/**
 * Python's `sorted(value)`.
 *
 * @throws PythonError `TypeError` if the value is not iterable, or its items have no order.
 */
export function pythonSorted(value: PyValue): PyValue[] {
  return [...iterate(value)].sort((left, right) => {
    if (lessThan(left, right)) return -1;
    return lessThan(right, left) ? 1 : 0;
  });
}
