import {
  isPyDict,
  isPyList,
  PythonError,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import { parseExpression, type DictEntry, type Expression } from "../python-source/expression.ts";

/** The value of a Python literal, as Python itself would compute it. */
export interface PythonLiteral {
  /** The value. Tuples are lists, and keys of dictionaries are as `json.dumps()` writes them. */
  readonly value: PyValue;
  /** True if `json.dumps()` accepts the value. It refuses sets, bytes, complex numbers and `...`. */
  readonly isJson: boolean;
}

/** Makes the literal of a value that `json.dumps()` accepts. */
export function jsonLiteral(value: PyValue): PythonLiteral {
  return { value, isJson: true };
}

/**
 * The value of a literal that must be JSON.
 *
 * @throws PythonError `TypeError` if it is not, as `json.dumps()` raises.
 */
export function requireJson({ value, isJson }: PythonLiteral): PyValue {
  if (isJson) return value;
  throw new PythonError("TypeError", "an argument is not JSON serializable");
}

const foreign: PythonLiteral = { value: null, isJson: false };

/**
 * Evaluates a literal as Python's `ast.literal_eval()` does.
 *
 * **Source:** CPython 3.11, `Lib/ast.py`.
 *
 * @throws PythonError `SyntaxError` or `ValueError` for anything that is not a literal, `TypeError`
 *   for a set or dictionary with unhashable keys.
 */
export function evaluatePythonLiteral(source: string): PythonLiteral {
  return evaluate(parseExpression(source.replace(/^[ \t]+/, "")));
}

function evaluate(node: Expression): PythonLiteral {
  switch (node.type) {
    case "constant":
      return { value: node.value, isJson: true };
    case "foreign":
      if (node.kind === "formatted") throw malformed();
      return foreign;
    case "list":
    case "tuple":
      return evaluateItems(node.items);
    case "set":
      for (const item of node.items) {
        evaluate(item);
        checkHashable(item);
      }
      return foreign;
    case "dict":
      return evaluateDict(node.entries);
    case "call": {
      const isEmptySet =
        node.callee.type === "name" &&
        node.callee.id === "set" &&
        node.keywords.length === 0 &&
        !node.hasPositional;
      if (!isEmptySet) throw malformed();
      return foreign;
    }
    case "unary":
      return evaluateSigned(node);
    case "binary": {
      const isSum = node.operator === "+" || node.operator === "-";
      const isImaginary = node.right.type === "foreign" && node.right.kind === "imaginary";
      if (!isSum || !isImaginary) throw malformed();
      evaluateSigned(node.left);
      return foreign;
    }
    default:
      throw malformed();
  }
}

function evaluateItems(items: readonly Expression[]): PythonLiteral {
  const literals = items.map(evaluate);
  return {
    value: literals.map(({ value }) => value),
    isJson: literals.every(({ isJson }) => isJson),
  };
}

function evaluateSigned(node: Expression): PythonLiteral {
  const isSigned = node.type === "unary" && (node.operator === "-" || node.operator === "+");
  const operand = isSigned ? node.operand : node;
  if (operand.type === "foreign" && operand.kind === "imaginary") return foreign;
  const value = operand.type === "constant" ? operand.value : null;
  if (typeof value !== "bigint" && typeof value !== "number") throw malformed();
  return { value: isSigned && node.operator === "-" ? -value : value, isJson: true };
}

function evaluateDict(entries: readonly DictEntry[]): PythonLiteral {
  const members = new Map<string, PyValue>();
  // Equal numbers are one key (`1`, `1.0` and `True`), written as the first of them.
  const numbers = new Map<number | undefined, string>();
  let isJson = true;
  for (const { key, value } of entries) {
    if (key === undefined) throw malformed();
    const keyLiteral = evaluate(key);
    const valueLiteral = evaluate(value);
    checkHashable(key);
    isJson &&= keyLiteral.isJson && valueLiteral.isJson && key.type !== "tuple";
    const number = toNumber(keyLiteral.value);
    const spelling = numbers.get(number) ?? toJsonKey(keyLiteral.value);
    if (number !== undefined) numbers.set(number, spelling);
    members.set(spelling, valueLiteral.value);
  }
  return { value: members, isJson };
}

function toNumber(value: PyValue): number | undefined {
  const isNumber = typeof value === "bigint" || typeof value === "number";
  return isNumber || typeof value === "boolean" ? Number(value) : undefined;
}

/** Returns the key of a JSON object that `json.dumps()` writes for a key of a dictionary. */
export function toJsonKey(value: PyValue): string {
  if (typeof value === "string") return value;
  return isPyList(value) || isPyDict(value) ? "" : stringifyPythonJson(value);
}

function checkHashable(node: Expression): void {
  const isEmptySet = node.type === "call";
  if (node.type === "list" || node.type === "dict" || node.type === "set" || isEmptySet) {
    throw new PythonError("TypeError", `unhashable type: '${node.type}'`);
  }
  if (node.type === "tuple") node.items.forEach(checkHashable);
}

function malformed(): PythonError {
  return new PythonError("ValueError", "malformed node or string");
}
