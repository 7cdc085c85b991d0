import { numberOf } from "../values/template-compare.ts";
import { TemplateError, typeError } from "../template-error.ts";
import type { TemplateValue } from "../values/template-value.ts";
import { textOf, typeName } from "../values/template-value.ts";

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

/**
 * An argument as text.
 *
 * @param rule how Python's message begins.
 * @throws TemplateError `TypeError` where it is none.
 */
export function requireText(value: TemplateValue, rule = "must be str"): string {
  const text = textOf(value);
  if (text === undefined) throw typeError(`${rule}, not ${typeName(value)}`);
  return text;
}
