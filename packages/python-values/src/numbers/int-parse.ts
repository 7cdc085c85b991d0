import { parseIntDigits } from "./int-text.ts";
import { isPrintable } from "../text/is-printable.ts";
import { PythonValueError } from "../python-error.ts";
import { reprString } from "../text/repr.ts";
import { pythonStrip } from "../text/strip.ts";

/**
 * Python's `int(text)`: white space around, one sign, decimal digits of any script, and single
 * underscores between digits.
 *
 * @throws PythonValueError for any other text, and beyond 4,300 digits.
 */
export function parsePythonInt(text: string): bigint {
  const match = /^([+-]?)(\p{Nd}+(?:_\p{Nd}+)*)$/u.exec(pythonStrip(text));
  const digits = match === null ? undefined : asciiDigits((match[2] ?? "").replaceAll("_", ""));
  if (digits === undefined) {
    throw new PythonValueError(`invalid literal for int() with base 10: ${reprString(text)}`);
  }
  return parseIntDigits((match?.[1] === "-" ? "-" : "") + digits);
}

/** Digits of any script as ASCII digits; `undefined` if one is newer than Python's Unicode version. */
function asciiDigits(text: string): string | undefined {
  let digits = "";
  for (const character of text) {
    const codePoint = character.codePointAt(0) as number;
    if (!isPrintable(codePoint)) return undefined;
    digits += digitValue(codePoint);
  }
  return digits;
}

/** The value of a decimal digit: digits are encoded in runs of ten, zero first. */
function digitValue(codePoint: number): number {
  let start = codePoint;
  while (/^\p{Nd}$/u.test(String.fromCodePoint(start - 1))) start -= 1;
  return (codePoint - start) % 10;
}
