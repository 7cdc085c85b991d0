import {
  isPythonSpace,
  parseIntDigits,
  PythonError,
  pythonStrip,
  PythonValueError,
} from "../../../../python-values/src/index.ts";

const intPattern = /^([+-]?)(\d+(?:_\d+)*)$/;
const floatPattern =
  /^[+-]?(?:(?:\d+(?:_\d+)*)?\.\d+(?:_\d+)*|\d+(?:_\d+)*\.?)(?:[eE][+-]?\d+(?:_\d+)*)?$/;
const specialPattern = /^([+-]?)(?:(inf|infinity)|nan)$/i;

/**
 * Reads a number as Python's `int(text)` does. Surrounding white space, a sign, single underscores
 * between digits and the decimal digits of every script are allowed.
 *
 * @throws PythonValueError for any other text, and beyond 4,300 digits.
 */
export function parsePythonInt(text: string): bigint {
  const match = intPattern.exec(normalize(text));
  if (match === null) throw new PythonValueError("invalid literal for int() with base 10");
  const value = parseIntDigits((match[2] ?? "").replaceAll("_", ""));
  return match[1] === "-" ? -value : value;
}

/**
 * Reads a number as Python's `float(text)` does, including `inf`, `infinity` and `nan` in any case.
 *
 * @throws PythonValueError for any other text.
 */
export function parsePythonFloat(text: string): number {
  const trimmed = normalize(text);
  const special = specialPattern.exec(trimmed);
  if (special !== null) {
    if (special[2] === undefined) return Number.NaN;
    return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  if (!floatPattern.test(trimmed)) throw new PythonValueError("could not convert string to float");
  return Number(trimmed.replaceAll("_", ""));
}

/**
 * Reads a number; a float without a fraction becomes an integer.
 *
 * @throws PythonError `ValueError` for NaN and any other text, `OverflowError` for infinities.
 */
export function parsePythonNumber(text: string): bigint | number {
  const value = parsePythonFloat(text);
  const truncated = truncateFloat(value);
  return Number(truncated) === value ? truncated : value;
}

/**
 * Truncates a float towards zero, as Python's `int(number)` does.
 *
 * @throws PythonError `OverflowError` for infinities, `ValueError` for NaN.
 */
export function truncateFloat(value: number): bigint {
  if (Number.isNaN(value)) throw new PythonValueError("cannot convert float NaN to integer");
  if (!Number.isFinite(value)) {
    throw new PythonError("OverflowError", "cannot convert float infinity to integer");
  }
  return BigInt(Math.trunc(value));
}

/** Strips white space, and replaces the decimal digits of all scripts by ASCII digits. */
function normalize(text: string): string {
  const ascii = text.replace(/[^\0-\x7F]/gu, (character) => {
    if (character.length === 1 && isPythonSpace(character.charCodeAt(0))) return " ";
    return /\p{Nd}/u.test(character) ? digitValue(character.codePointAt(0) ?? 0) : character;
  });
  // Unlike `str.strip()`, the separators U+001C to U+001F do not count.
  return pythonStrip(ascii, " \t\n\v\f\r");
}

/** The value of a decimal digit. Each script's ten digits are consecutive. */
function digitValue(codePoint: number): string {
  let start = codePoint;
  while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start -= 1;
  return String((codePoint - start) % 10);
}
