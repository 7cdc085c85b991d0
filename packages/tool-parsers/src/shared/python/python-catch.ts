import { PythonError, type PythonExceptionName } from "../../../../python-values/src/index.ts";

/**
 * Python's `try: … except …: None`. Returns the value of `read()`, or `undefined` if it raises one
 * of `exceptions`; without `exceptions`, for any exception. `ValueError` covers `JSONDecodeError`,
 * as in Python.
 */
export function catchPython<T>(
  read: () => T,
  ...exceptions: readonly PythonExceptionName[]
): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    if (exceptions.length === 0 || exceptions.some((name) => covers(name, error.exception))) {
      return undefined;
    }
    throw error;
  }
}

function covers(caught: PythonExceptionName, raised: PythonExceptionName): boolean {
  return caught === raised || (caught === "ValueError" && raised === "JSONDecodeError");
}
