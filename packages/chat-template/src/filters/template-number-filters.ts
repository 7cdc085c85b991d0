import { pythonStrip, roundHalfEven } from "../../../python-values/src/index.ts";
import { calculate } from "../values/template-arithmetic.ts";
import { numberOf } from "../values/template-compare.ts";
import { TemplateError, typeError } from "../template-error.ts";
import { undefinedError } from "../values/template-undefined.ts";
import type { TemplateValue } from "../values/template-value.ts";
import { textOf, typeName, Undefined } from "../values/template-value.ts";

/** The `int` filter; returns `otherwise` if the value is not a number. */
export function convertToInteger(
  value: TemplateValue,
  otherwise: TemplateValue,
  base: TemplateValue,
): TemplateValue {
  const text = textOf(value);
  const radix = Number(numberOf(base) ?? 10n);
  const integer = text === undefined ? undefined : parseInteger(text, radix);
  if (integer !== undefined) return integer;
  const number = toNumber(value);
  if (typeof number === "bigint") return number;
  return number === undefined || !Number.isFinite(number) ? otherwise : BigInt(Math.trunc(number));
}

/** The `float` filter; returns `otherwise` if the value is not a number. */
export function convertToFloat(value: TemplateValue, otherwise: TemplateValue): TemplateValue {
  const number = toNumber(value);
  return number === undefined ? otherwise : Number(number);
}

/** The `round` filter, which keeps the type: float or integer. */
export function roundNumber(
  value: TemplateValue,
  precision: TemplateValue,
  method: TemplateValue,
): TemplateValue {
  const digits = numberOf(precision);
  if (value instanceof Undefined) throw undefinedError(value);
  const number = numberOf(value);
  if (method !== "common" && method !== "ceil" && method !== "floor") {
    throw new TemplateError("FilterArgumentError", "method must be common, ceil or floor");
  }
  if (number === undefined || typeof digits !== "bigint") {
    throw typeError(`type ${typeName(value)} doesn't define __round__ method`);
  }
  if (method === "common") return roundHalfEven(number, Number(digits));
  const scale = calculate(10n, "**", digits);
  const scaled = Number(calculate(number, "*", scale));
  const rounded = BigInt(method === "ceil" ? Math.ceil(scaled) : Math.floor(scaled));
  return calculate(rounded, "/", scale);
}

function toNumber(value: TemplateValue): bigint | number | undefined {
  if (value instanceof Undefined) throw undefinedError(value);
  const text = textOf(value);
  return text === undefined ? numberOf(value) : parseFloatText(text);
}

const radixDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
const prefixes: Readonly<Record<number, string>> = { 2: "0b", 8: "0o", 16: "0x" };

/** Python's `int(text, base)`, or `undefined` if the text is not an integer. */
function parseInteger(text: string, base: number): bigint | undefined {
  const match = /^([+-]?)([0-9a-z]+(?:_[0-9a-z]+)*)$/.exec(pythonStrip(text).toLowerCase());
  if (match === null || base < 2 || base > 36) return undefined;
  let digits = (match[2] ?? "").replaceAll("_", "");
  const prefix = prefixes[base];
  if (prefix !== undefined && digits.startsWith(prefix)) digits = digits.slice(2);
  let value = 0n;
  for (const digit of digits) {
    const weight = radixDigits.indexOf(digit);
    if (weight >= base) return undefined;
    value = value * BigInt(base) + BigInt(weight);
  }
  return match[1] === "-" ? -value : value;
}

/** Python's `float(text)`, or `undefined` if the text is not a number. */
function parseFloatText(text: string): number | undefined {
  const digits = pythonStrip(text).toLowerCase();
  const special = /^([+-]?)(inf|infinity|nan)$/.exec(digits);
  if (special !== null) {
    if (special[2] === "nan") return Number.NaN;
    return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  const number = /^[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+)?$/;
  return number.test(digits) ? Number(digits.replaceAll("_", "")) : undefined;
}
