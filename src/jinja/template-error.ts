import type { PythonExceptionName } from "../python/python-error.ts";
import { PythonError } from "../python/python-error.ts";

/** The names that Python gives to the errors of a template. */
type TemplateErrorKind =
  | PythonExceptionName
  | "AssertionError"
  | "FilterArgumentError"
  | "LookupError"
  /** Not one of Python's: the rendering took more than it may. */
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
  /** What the error is called in Python; `TemplateError` is what `raise_exception` raises. */
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
 * What a render that failed raises. Errors of the Python kernel become a `TemplateError`, and so does
 * running out of stack (a macro that calls itself) or of room for a text; anything else is our own
 * bug and stays as it is.
 */
export function toTemplateError(error: unknown): unknown {
  if (error instanceof PythonError) return new TemplateError(error.exception, error.message);
  if (!(error instanceof RangeError)) return error;
  return /call stack/i.test(error.message)
    ? new TemplateError("RecursionError", "maximum recursion depth exceeded")
    : new TemplateError("OverflowError", error.message);
}
