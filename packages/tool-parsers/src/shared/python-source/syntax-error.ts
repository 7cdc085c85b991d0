import { PythonError } from "../../../../python-values/src/index.ts";

/** The exception that CPython raises for text that is not Python. */
export function syntaxError(problem: string): PythonError {
  return new PythonError("SyntaxError", problem);
}
