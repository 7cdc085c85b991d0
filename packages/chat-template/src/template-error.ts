import { PythonError, type PythonExceptionName } from "../../python-values/src/index.ts";

/** Python's names for the errors of a template. */
export type TemplateErrorKind =
  | PythonExceptionName
  | "AssertionError"
  | "FilterArgumentError"
  | "LookupError"
  /** The rendering exceeded its limits. Python has no such error. */
  | "LimitError"
  | "SecurityError"
  | "TemplateError"
  | "TemplateRuntimeError"
  | "UndefinedError"
  | "UnicodeDecodeError"
  | "UnicodeEncodeError";

/** A chat template refused a conversation: `raise_exception`, an undefined value, a wrong type. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  /** The error's name in Python; `raise_exception` raises `TemplateError`. */
  readonly kind: TemplateErrorKind;

  constructor(kind: TemplateErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Python's `TypeError`, which most misuses of a value raise. */
export function typeError(message: string): TemplateError {
  return new TemplateError("TypeError", message);
}

/** Python's `ValueError`. */
export function valueError(message: string): TemplateError {
  return new TemplateError("ValueError", message);
}

/**
 * Converts an error of a rendering. Errors of the Python kernel become a `TemplateError`, and so does running out
 * of stack (a macro that calls itself) or of memory for a text. Any other error is our own bug and is returned
 * unchanged.
 */
export function toTemplateError(error: unknown): unknown {
  if (error instanceof PythonError) return new TemplateError(error.exception, error.message);
  if (!(error instanceof RangeError)) return error;
  return /call stack/i.test(error.message)
    ? new TemplateError("RecursionError", "maximum recursion depth exceeded")
    : new TemplateError("OverflowError", error.message);
}
