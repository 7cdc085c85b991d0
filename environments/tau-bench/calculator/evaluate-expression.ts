import { formatFloat } from "../../../packages/python-values/src/numbers/float-text.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { roundHalfEven } from "../../../packages/python-values/src/numbers/round.ts";
import { toFloat } from "../../../packages/python-values/src/numbers/to-float.ts";
import { applyOperator, applySign } from "./apply-operator.ts";
import type { Call, Expression, Factor } from "./expression.ts";
import { expressionDepth } from "./expression-depth.ts";
import type { Operand } from "./operand.ts";
import { operandText, operandType } from "./operand.ts";
import { parseExpression } from "./parse-expression.ts";

/** The deepest tree of an expression that CPython's compiler accepts within a benchmark run. */
const maxDepth = 2970;

/**
 * Returns the text of Python's `str(round(float(eval(text)), 2))`, or `Error: …` with the exception.
 *
 * @param text - Only digits, `+ - * / ( ) .` and spaces.
 */
export function evaluateExpression(text: string): string {
  try {
    const expression = parseExpression(text);
    if (expressionDepth(expression) >= maxDepth) {
      throw new PythonError(
        "RecursionError",
        "maximum recursion depth exceeded during compilation",
      );
    }
    return formatFloat(roundHalfEven(asFloat(evaluate(expression)), 2));
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    return `Error: ${error.message}`;
  }
}

function asFloat(value: Operand): number {
  if (typeof value !== "object") return toFloat(value);
  throw new PythonError(
    "TypeError",
    `float() argument must be a string or a real number, not '${operandType(value)}'`,
  );
}

function evaluate(expression: Expression): Operand {
  switch (expression.type) {
    case "int":
    case "float":
      return expression.value;
    case "tuple":
    case "ellipsis":
      return expression;
    case "chain":
      return expression.rest.reduce(
        (left, { operator, operand }) => applyOperator(operator, left, evaluate(operand)),
        evaluate(expression.first),
      );
    case "power":
      return evaluatePower(expression.factors);
    case "call":
      return failCall(evaluate(expression.called), expression.calls);
  }
}

/** Evaluates the bases in the order of the text, then the powers from the right, each with its signs. */
function evaluatePower(factors: readonly Factor[]): Operand {
  const bases = factors.map(({ base }) => evaluate(base));
  return factors.reduceRight<Operand | undefined>((exponent, { signs }, index) => {
    const base = bases[index] as Operand;
    const power = exponent === undefined ? base : applyOperator("**", base, exponent);
    return signs.reduceRight((value, sign) => applySign(sign, value), power);
  }, undefined) as Operand;
}

/** Raises the first error of a call, as no value of an expression is callable. */
function failCall(called: Operand, [call]: readonly Call[]): never {
  if (call !== undefined && call.type !== "empty") {
    const type = operandType(evaluate(call.argument));
    if (call.type === "star" && type !== "tuple") {
      throw new PythonError(
        "TypeError",
        `${operandText(called)} argument after * must be an iterable, not ${type}`,
      );
    }
    if (call.type === "double-star") {
      throw new PythonError(
        "TypeError",
        `${operandText(called)} argument after ** must be a mapping, not ${type}`,
      );
    }
  }
  throw new PythonError("TypeError", `'${operandType(called)}' object is not callable`);
}
