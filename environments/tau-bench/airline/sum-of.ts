import type { PyNumber } from "../../../src/python/numbers/arithmetic.ts";
import { add } from "../../../src/python/numbers/arithmetic.ts";
import { getItem } from "../../../src/python/get-item.ts";
import { iterate } from "../../../src/python/iterate.ts";
import type { PyValue } from "../../../src/python/value.ts";

/**
 * Python's `sum(item[key] for item in items)`.
 *
 * @throws PythonError if the items are not iterable, have no such key, or cannot be added.
 */
export function sumOf(items: PyValue, key: string): PyNumber {
  return iterate(items).reduce<PyNumber>((sum, item) => add(sum, getItem(item, key)), 0n);
}
