import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { add } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { iterate } from "../../../packages/python-values/src/iterate.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";

/**
 * Python's `sum(item[key] for item in items)`.
 *
 * @throws PythonError if the items are not iterable, have no such key, or cannot be added.
 */
export function sumOf(items: PyValue, key: string): PyNumber {
  return iterate(items).reduce<PyNumber>((sum, item) => add(sum, getItem(item, key)), 0n);
}
