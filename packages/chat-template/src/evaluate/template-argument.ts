import { numberOf } from "../values/template-compare.ts";
import { TemplateError, typeError } from "../template-error.ts";
import type { TemplateValue } from "../values/template-value.ts";
import { textOf, typeName } from "../values/template-value.ts";

/** Returns an argument as an integer. @throws TemplateError `TypeError` for another type. */
export function requireInteger(value: TemplateValue): bigint {
  const number = numberOf(value);
  if (typeof number === "bigint") return number;
  throw typeError(`'${typeName(value)}' object cannot be interpreted as an integer`);
}

/** The largest count, which limits the text that a template can make from a number. */
const maxCount = 10_000_000n;

/**
 * Returns an argument as a count of characters or items.
 *
 * @throws TemplateError `TypeError` if it is not an integer, `OverflowError` above ten million.
 */
export function requireCount(value: TemplateValue): number {
  const integer = requireInteger(value);
  if (integer > maxCount || integer < -maxCount) {
    throw new TemplateError("OverflowError", "cannot fit 'int' into an index-sized integer");
  }
  return Number(integer);
}

/**
 * Returns an argument as text.
 *
 * @param rule - The start of Python's message.
 * @throws TemplateError `TypeError` for another type.
 */
export function requireText(value: TemplateValue, rule = "must be str"): string {
  const text = textOf(value);
  if (text === undefined) throw typeError(`${rule}, not ${typeName(value)}`);
  return text;
}
