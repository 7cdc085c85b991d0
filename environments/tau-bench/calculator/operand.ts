import { formatFloat } from "../../../packages/python-values/src/numbers/float-text.ts";
import { formatInt } from "../../../packages/python-values/src/numbers/int-text.ts";

/** A value of an expression: a Python `int`, `float` or `complex`, `()`, or `...`. */
export type Operand =
  | bigint
  | number
  | Complex
  | { readonly type: "tuple" }
  | { readonly type: "ellipsis" };

/** A Python `complex`. */
export interface Complex {
  readonly type: "complex";
  readonly real: number;
  readonly imaginary: number;
}

/** The name of the value's Python type, as error texts print it. */
export function operandType(value: Operand): string {
  if (typeof value === "bigint") return "int";
  return typeof value === "number" ? "float" : value.type;
}

/** Python's `str()` of the value, which the texts of call errors contain. */
export function operandText(value: Operand): string {
  if (typeof value === "bigint") return formatInt(value);
  if (typeof value === "number") return formatFloat(value);
  if (value.type === "tuple") return "()";
  return value.type === "ellipsis" ? "Ellipsis" : complexText(value);
}

function complexText({ real, imaginary }: Complex): string {
  const imaginaryText = `${shortFloat(imaginary)}j`;
  if (real === 0 && !Object.is(real, -0)) return imaginaryText;
  const sign = imaginary < 0 || Object.is(imaginary, -0) ? "" : "+";
  return `(${shortFloat(real)}${sign}${imaginaryText})`;
}

/** A float within a complex number has no `.0`. */
function shortFloat(value: number): string {
  return formatFloat(value).replace(/\.0$/, "");
}
