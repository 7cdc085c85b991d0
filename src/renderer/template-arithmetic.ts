import { numberOf } from "./template-compare.ts";
import { TemplateError, typeError } from "./template-error.ts";
import { escapeHtml } from "./template-markup.ts";
import { formatPercent } from "./template-percent-format.ts";
import { undefinedError } from "./template-undefined.ts";
import type { TemplateValue } from "./template-value.ts";
import { isList, Markup, textOf, Tuple, typeName, Undefined } from "./template-value.ts";

/** The arithmetic operators of templates. */
export type ArithmeticOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**";

/**
 * Python's arithmetic: `+` joins strings, lists and tuples, `*` repeats them, `%` formats strings.
 *
 * @throws TemplateError `TypeError` for types that do not go together, `UndefinedError` for
 *   undefined, `ZeroDivisionError`.
 */
export function calculate(
  left: TemplateValue,
  operator: ArithmeticOperator,
  right: TemplateValue,
): TemplateValue {
  if (operator === "%") {
    const template = textOf(left);
    if (template !== undefined) return formatPercent(left as string | Markup, right);
  }
  if (left instanceof Undefined) throw undefinedError(left);
  if (right instanceof Undefined) throw undefinedError(right);
  const leftNumber = numberOf(left);
  const rightNumber = numberOf(right);
  if (leftNumber !== undefined && rightNumber !== undefined) {
    return calculateNumbers(leftNumber, operator, rightNumber);
  }
  const result =
    operator === "+" ? join(left, right) : operator === "*" ? repeatEither(left, right) : undefined;
  if (result === undefined) throw unsupported(left, operator, right);
  return result;
}

function unsupported(left: TemplateValue, operator: string, right: TemplateValue): TemplateError {
  const leftName = typeName(left);
  const rightName = typeName(right);
  if (operator === "+" && isSequenceName(leftName)) {
    return typeError(`can only concatenate ${leftName} (not "${rightName}") to ${leftName}`);
  }
  if (operator === "*" && (isSequenceName(leftName) || isSequenceName(rightName))) {
    const factor = isSequenceName(leftName) ? rightName : leftName;
    return typeError(`can't multiply sequence by non-int of type '${factor}'`);
  }
  const name = operator === "**" ? "** or pow()" : operator;
  return typeError(`unsupported operand type(s) for ${name}: '${leftName}' and '${rightName}'`);
}

function isSequenceName(name: string): boolean {
  return name === "str" || name === "list" || name === "tuple";
}

function join(left: TemplateValue, right: TemplateValue): TemplateValue | undefined {
  if (typeof left === "string" && typeof right === "string") return left + right;
  const leftText = textOf(left);
  const rightText = textOf(right);
  if (leftText !== undefined && rightText !== undefined) {
    return new Markup(escapeHtml(left).text + escapeHtml(right).text);
  }
  if (isList(left) && isList(right)) return [...left, ...right];
  if (left instanceof Tuple && right instanceof Tuple) {
    return new Tuple([...left.items, ...right.items]);
  }
  return undefined;
}

/** Longest text or list that a template may make by repeating. */
const maxRepeated = 10_000_000;

function repeatEither(left: TemplateValue, right: TemplateValue): TemplateValue | undefined {
  const leftCount = countOf(left);
  return leftCount === undefined ? repeat(left, countOf(right)) : repeat(right, leftCount);
}

function countOf(value: TemplateValue): number | undefined {
  const number = numberOf(value);
  return typeof number === "bigint" ? Math.max(0, Number(number)) : undefined;
}

function repeat(value: TemplateValue, count: number | undefined): TemplateValue | undefined {
  if (count === undefined) return undefined;
  const text = textOf(value);
  const items = isList(value) ? value : value instanceof Tuple ? value.items : undefined;
  const size = (text ?? items)?.length;
  if (size === undefined) return undefined;
  if (size * count > maxRepeated) {
    throw new TemplateError("OverflowError", `Cannot repeat ${size} items ${count} times`);
  }
  if (text !== undefined) {
    return value instanceof Markup ? new Markup(text.repeat(count)) : text.repeat(count);
  }
  const repeated = size === 0 ? [] : Array.from({ length: count }, () => items ?? []).flat(1);
  return value instanceof Tuple ? new Tuple(repeated) : repeated;
}

function calculateNumbers(
  left: bigint | number,
  operator: ArithmeticOperator,
  right: bigint | number,
): bigint | number {
  if (typeof left === "bigint" && typeof right === "bigint") {
    return calculateIntegers(left, operator, right);
  }
  return calculateFloats(toFloat(left), operator, toFloat(right));
}

/** Python's `float(int)`. @throws TemplateError `OverflowError` */
function toFloat(value: bigint | number): number {
  const float = Number(value);
  if (typeof value === "bigint" && !Number.isFinite(float)) {
    throw new TemplateError("OverflowError", "int too large to convert to float");
  }
  return float;
}

/** Largest power that templates may compute, in bits. */
const maxPowerBits = 100_000n;

function calculateIntegers(
  left: bigint,
  operator: ArithmeticOperator,
  right: bigint,
): bigint | number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      assertDivisor(right, "division by zero");
      return toFloat(left) / toFloat(right);
    case "//":
      assertDivisor(right, "integer division or modulo by zero");
      return (left - floorRemainder(left, right)) / right;
    case "%":
      assertDivisor(right, "integer modulo by zero");
      return floorRemainder(left, right);
    case "**":
      if (right < 0n) return calculateFloats(toFloat(left), "**", toFloat(right));
      if (BigInt(left.toString(2).length) * right > maxPowerBits) {
        throw new TemplateError("OverflowError", `Cannot raise ${left} to the power ${right}`);
      }
      return left ** right;
  }
}

function floorRemainder(left: bigint, right: bigint): bigint {
  const remainder = left % right;
  return remainder !== 0n && remainder < 0n !== right < 0n ? remainder + right : remainder;
}

function calculateFloats(left: number, operator: ArithmeticOperator, right: number): number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      assertDivisor(right, "float division by zero");
      return left / right;
    case "//":
      assertDivisor(right, "float floor division by zero");
      return floorDivide(left, right);
    case "%":
      assertDivisor(right, "float modulo");
      return floatRemainder(left, right);
    case "**":
      if (left === 0 && right < 0) {
        throw new TemplateError("ZeroDivisionError", "0.0 cannot be raised to a negative power");
      }
      return raise(left, right);
  }
}

function raise(left: number, right: number): number {
  const power = left ** right;
  if (!Number.isFinite(power) && Number.isFinite(left) && Number.isFinite(right)) {
    throw new TemplateError("OverflowError", "(34, 'Numerical result out of range')");
  }
  return power;
}

/** The whole part nearest to the true quotient; a zero has the quotient's sign. */
function floorDivide(left: number, right: number): number {
  const quotient = (left - floatRemainder(left, right)) / right;
  const floor = Math.floor(quotient);
  if (quotient === 0) return left / right < 0 || Object.is(left / right, -0) ? -0 : 0;
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

function floatRemainder(left: number, right: number): number {
  const remainder = left % right;
  if (remainder === 0) return right < 0 ? -0 : 0;
  return remainder < 0 === right < 0 ? remainder : remainder + right;
}

function assertDivisor(divisor: bigint | number, message: string): void {
  // eslint-disable-next-line eqeqeq
  if (divisor == 0) throw new TemplateError("ZeroDivisionError", message);
}

/** Python's unary minus and plus. @throws TemplateError for anything but numbers. */
export function negate(value: TemplateValue, operator: "-" | "+"): TemplateValue {
  if (value instanceof Undefined) throw undefinedError(value);
  const number = numberOf(value);
  if (number === undefined) {
    throw typeError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
  }
  return operator === "-" ? -number : number;
}
