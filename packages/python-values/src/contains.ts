import { isOrEquals } from "./equals.ts";
import { assertHashable } from "./hashable.ts";
import { PythonError } from "./python-error.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/**
 * Python's `item in container`.
 *
 * @throws PythonError `TypeError` if the value is not a container, if the item cannot be a key of the dictionary,
 * or if a non-string is searched in a string.
 */
export function contains(container: PyValue, item: PyValue): boolean {
  if (isPyDict(container)) {
    assertHashable(item);
    return typeof item === "string" && container.has(item);
  }
  if (isPyList(container)) return container.some((element) => isOrEquals(element, item));
  if (typeof container !== "string") {
    throw new PythonError(
      "TypeError",
      `argument of type '${pythonTypeName(container)}' is not iterable`,
    );
  }
  if (typeof item !== "string") {
    throw new PythonError(
      "TypeError",
      `'in <string>' requires string as left operand, not ${pythonTypeName(item)}`,
    );
  }
  return container.includes(item);
}
