import { PythonError } from "./python-error.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/**
 * Asserts that the value can be a dictionary's key.
 *
 * @throws PythonError `TypeError` for lists and dictionaries.
 */
export function assertHashable(
  value: PyValue,
): asserts value is null | boolean | bigint | number | string {
  if (isPyList(value) || isPyDict(value)) {
    throw new PythonError("TypeError", `unhashable type: '${pythonTypeName(value)}'`);
  }
}
