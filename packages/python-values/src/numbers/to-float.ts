import { PythonError } from "../python-error.ts";

/**
 * Python's `float(value)` of a number.
 *
 * @throws PythonError `OverflowError` if an integer is too large.
 */
export function toFloat(value: bigint | number): number {
  const float = Number(value);
  if (typeof value === "bigint" && !Number.isFinite(float)) {
    throw new PythonError("OverflowError", "int too large to convert to float");
  }
  return float;
}
