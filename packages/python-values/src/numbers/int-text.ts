import { PythonValueError } from "../python-error.ts";

/** CPython's limit on conversions between `int` and decimal text. */
const MAX_INT_DIGITS = 4300;

const advice = "use sys.set_int_max_str_digits() to increase the limit";

/** The smallest magnitude with too many digits to print. */
let tooLarge: bigint | undefined;

/**
 * The decimal text of an `int`, as `str()` and `json.dumps()` print it.
 *
 * @throws PythonValueError beyond 4,300 digits.
 */
export function formatInt(value: bigint): string {
  tooLarge ??= 10n ** BigInt(MAX_INT_DIGITS);
  if (value >= tooLarge || value <= -tooLarge) {
    throw new PythonValueError(
      `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion; ${advice}`,
    );
  }
  return value.toString();
}

/**
 * The `int` of an optional minus sign and ASCII digits.
 *
 * @throws PythonValueError beyond 4,300 digits.
 */
export function parseIntDigits(text: string): bigint {
  const digitCount = text.startsWith("-") ? text.length - 1 : text.length;
  if (digitCount > MAX_INT_DIGITS) {
    throw new PythonValueError(
      `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion: ` +
        `value has ${digitCount} digits; ${advice}`,
    );
  }
  return BigInt(text);
}
