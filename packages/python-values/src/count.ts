import { attributeError } from "./attribute-error.ts";
import { isOrEquals } from "./equals.ts";
import { PythonError } from "./python-error.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyValue } from "./value.ts";
import { isPyList } from "./value.ts";

/**
 * Python's `container.count(item)`: equal items of a list, or non-overlapping occurrences in a string.
 *
 * @throws PythonError `AttributeError` if the container has no such method, `TypeError` if a non-string is counted
 * in a string.
 */
export function countOf(container: PyValue, item: PyValue): number {
  if (isPyList(container)) return container.filter((element) => isOrEquals(element, item)).length;
  if (typeof container !== "string") throw attributeError(container, "count");
  if (typeof item !== "string") {
    throw new PythonError("TypeError", `must be str, not ${pythonTypeName(item)}`);
  }
  if (item === "") return Array.from(container).length + 1;
  return container.split(item).length - 1;
}
