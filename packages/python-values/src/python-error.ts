/** The Python exceptions that the ported code can raise. */
export type PythonExceptionName =
  | "AttributeError"
  | "IndexError"
  | "JSONDecodeError"
  | "KeyError"
  | "MemoryError"
  | "OverflowError"
  | "RecursionError"
  | "SyntaxError"
  | "TypeError"
  | "ValueError"
  | "ZeroDivisionError";

/** A Python exception: its name, and its `str(e)` as message. */
export class PythonError extends Error {
  /** The exception's class name, such as `KeyError`. */
  readonly exception: PythonExceptionName;

  constructor(exception: PythonExceptionName, message: string) {
    super(message);
    this.name = "PythonError";
    this.exception = exception;
  }
}

/** Python's `ValueError`. */
export class PythonValueError extends PythonError {
  constructor(message: string, exception: "ValueError" | "JSONDecodeError" = "ValueError") {
    super(exception, message);
    this.name = "PythonValueError";
  }
}
