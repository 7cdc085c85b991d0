import { parseIntDigits } from "../../../src/python/int-text.ts";

const decimal = /^(?:0(?:_?0)*|[1-9](?:_?\d)*)$/;
const prefixed = /^0(?:[xX](?:_?[\da-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)$/;
const digits = String.raw`\d(?:_?\d)*`;
const float = new RegExp(`^(?:(?:${digits})?\\.${digits}|${digits}\\.?)(?:[eE][+-]?${digits})?$`);

/**
 * The value of a Python number literal: an `int`, or a `float` where it has a point or an exponent.
 * `undefined` for anything else, such as a complex number or a leading zero.
 *
 * @throws PythonValueError for an integer of more than 4,300 digits.
 */
export function readNumberLiteral(text: string): bigint | number | undefined {
  const plain = text.replaceAll("_", "");
  if (decimal.test(text)) return parseIntDigits(plain);
  if (prefixed.test(text)) return BigInt(plain);
  const isFloat = float.test(text) && /[.eE]/.test(text);
  return isFloat ? Number(plain) : undefined;
}
