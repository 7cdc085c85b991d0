import { PythonError } from "./python-error.ts";
import type { MutableValue } from "./mutable-value.ts";
import { pythonTypeName } from "./type-name.ts";

/**
 * Python's `container[key] = value` with a string as key.
 *
 * @throws PythonError `TypeError` if the container is not a dictionary.
 */
export function setItem(container: MutableValue, key: string, value: MutableValue): void {
  if (container instanceof Map) {
    container.set(key, value);
    return;
  }
  throw new PythonError(
    "TypeError",
    Array.isArray(container)
      ? "list indices must be integers or slices, not str"
      : `'${pythonTypeName(container)}' object does not support item assignment`,
  );
}
