import { numberOf } from "./template-compare.ts";
import { TemplateError, typeError } from "./template-error.ts";
import { undefinedError } from "./template-undefined.ts";
import type { TemplateValue } from "./template-value.ts";
import { textOf, typeName, Undefined } from "./template-value.ts";

/** An argument as an integer. @throws TemplateError `TypeError` where it is none. */
export function requireInteger(value: TemplateValue): bigint {
  const number = numberOf(value);
  if (typeof number === "bigint") return number;
  throw typeError(`'${typeName(value)}' object cannot be interpreted as an integer`);
}

/** Longest text that a template may make out of a number. */
const maxCount = 10_000_000n;

/**
 * An argument as a count of characters or items.
 *
 * @throws TemplateError `TypeError` where it is no integer, `OverflowError` beyond ten million.
 */
export function requireCount(value: TemplateValue): number {
  const integer = requireInteger(value);
  if (integer > maxCount || integer < -maxCount) {
    throw new TemplateError("OverflowError", "cannot fit 'int' into an index-sized integer");
  }
  return Number(integer);
}

/** An argument as text. @throws TemplateError where it is none. */
export function requireText(value: TemplateValue, what = "argument"): string {
  const text = textOf(value);
  if (text !== undefined) return text;
  if (value instanceof Undefined) throw undefinedError(value);
  throw typeError(`${what} must be str, not ${typeName(value)}`);
}
