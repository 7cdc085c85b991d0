import { PythonError } from "../../../../packages/python-values/src/python-error.ts";

/** The exception that CPython raises for text that is not Python. */
export function syntaxError(problem: string): PythonError {
  return new PythonError("SyntaxError", problem);
}
