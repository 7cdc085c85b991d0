import {
  calculateNumbers,
  type NumberOperator,
  raiseNumber,
} from "../../../python-values/src/index.ts";
import { spend } from "../evaluate/budget.ts";
import { numberOf } from "./template-compare.ts";
import { TemplateError, typeError } from "../template-error.ts";
import { escapeHtml } from "./template-markup.ts";
import { formatPercent } from "./template-percent-format.ts";
import { undefinedError } from "./template-undefined.ts";
import type { TemplateValue } from "./template-value.ts";
import {
  isList,
  Markup,
  runtimeError,
  textOf,
  Tuple,
  typeName,
  Undefined,
} from "./template-value.ts";

/** The arithmetic operators of templates. */
export type ArithmeticOperator = NumberOperator | "**";

/**
 * Python's arithmetic: `+` joins strings, lists and tuples, `*` repeats them, `%` formats strings.
 *
 * @throws TemplateError `TypeError` for incompatible types, `UndefinedError` for undefined.
 * @throws PythonError `ZeroDivisionError`, `OverflowError`.
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
    return operator === "**"
      ? raise(leftNumber, rightNumber)
      : calculateNumbers(leftNumber, operator, rightNumber);
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
  if (isList(left) && isList(right)) {
    spend(left.length + right.length);
    return [...left, ...right];
  }
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
  spend(Math.ceil((size * count) / 8));
  if (text !== undefined) {
    return value instanceof Markup ? new Markup(text.repeat(count)) : text.repeat(count);
  }
  const repeated = size === 0 ? [] : Array.from({ length: count }, () => items ?? []).flat(1);
  return value instanceof Tuple ? new Tuple(repeated) : repeated;
}

function raise(base: bigint | number, exponent: bigint | number): bigint | number {
  const power = raiseNumber(base, exponent);
  if (power !== undefined) return power;
  throw runtimeError(`Cannot raise ${base} to the power ${exponent}: the result is complex`);
}

/** Python's unary minus and plus. @throws TemplateError if the value is not a number. */
export function negate(value: TemplateValue, operator: "-" | "+"): TemplateValue {
  if (value instanceof Undefined) throw undefinedError(value);
  const number = numberOf(value);
  if (number === undefined) {
    throw typeError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
  }
  return operator === "-" ? -number : number;
}
