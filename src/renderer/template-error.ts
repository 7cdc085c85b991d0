/** The names that Python gives to the errors of a template. */
export type TemplateErrorKind =
  | "TemplateError"
  | "TemplateRuntimeError"
  | "UndefinedError"
  | "SecurityError"
  | "FilterArgumentError"
  | "TypeError"
  | "ValueError"
  | "KeyError"
  | "IndexError"
  | "OverflowError"
  | "ZeroDivisionError"
  | "AssertionError"
  | "RecursionError";

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
