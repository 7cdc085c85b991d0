import { PythonError } from "../../../python/python-error.ts";

/** What CPython raises for text that is no Python. */
export function syntaxError(problem: string): PythonError {
  return new PythonError("SyntaxError", problem);
}
