import { PythonError } from "../../../python-values/src/index.ts";
import type { CompareOperator, JinjaExpression } from "../syntax/ast.ts";
import { spendOn } from "./budget.ts";
import { compileArguments, compileCall } from "./call.ts";
import type { Evaluate, Frame } from "./frame.ts";
import { frameAt } from "./frame.ts";
import { compileFilter, compileTest } from "./filter.ts";
import { JinjaScope } from "./scope.ts";
import { calculate, negate } from "../values/template-arithmetic.ts";
import { compileMemberAccess, getItem } from "../values/template-attribute.ts";
import { compareOrder, contains, dictSet, equals } from "../values/template-compare.ts";
import { isTruthy } from "../values/template-iterate.ts";
import { joinMarkup } from "../values/template-markup.ts";
import { sliceOf } from "../values/template-subscript.ts";
import { TemplateError } from "../template-error.ts";
import { strOf } from "../values/template-text.ts";
import type { TemplateValue } from "../values/template-value.ts";
import { Tuple, Undefined } from "../values/template-value.ts";

/** The position of an expression. */
interface ExpressionPlace {
  readonly scope: JinjaScope;
  /** True if it stands directly in a condition; see `FilterPlace`. */
  readonly soft: boolean;
}

/**
 * Compiles an expression to a function that computes it.
 *
 * @throws UsageError for a filter or test that does not exist.
 */
export function compileExpression(expression: JinjaExpression, place: ExpressionPlace): Evaluate {
  const compile = (part: JinjaExpression) => compileExpression(part, place);
  switch (expression.type) {
    case "constant":
      return () => expression.value;
    case "name":
      return compileName(expression.name, place.scope);
    case "list":
    case "tuple":
      return compileItems(expression, place);
    case "dict":
      return compileDict(expression, place);
    case "and":
    case "or":
      return compileLogical(expression, place);
    case "not": {
      const operand = compile(expression.operand);
      return (frame) => !isTruthy(operand(frame));
    }
    case "arithmetic":
      return compileArithmetic(expression, place);
    case "sign": {
      const operand = compile(expression.operand);
      return (frame) => negate(operand(frame), expression.operator);
    }
    case "concat": {
      const parts = expression.parts.map(compile);
      // Jinja joins constants at compile time, as plain text.
      const { escapes, isVolatile } = place.scope;
      const joinsMarkup = escapes && !isVolatile && !expression.parts.every(isConstant);
      return (frame) => {
        const values = parts.map((part) => part(frame));
        return joinsMarkup ? joinMarkup(values) : values.map(strOf).join("");
      };
    }
    case "compare":
      return compileCompare(expression, place);
    case "conditional":
      return compileConditional(expression, { ...place, soft: true });
    case "filter":
      return compileFilter(compile(expression.operand), expression.filter, { ...place, compile });
    case "test":
      return compileTest(compile(expression.operand), expression.test, { ...place, compile });
    case "attribute":
      return compileMemberAccess(compile(expression.object), expression.name);
    case "item": {
      const object = compile(expression.object);
      const key = compile(expression.key);
      return (frame) => getItem(object(frame), key(frame));
    }
    case "slice":
      return compileSlice(expression, place);
    case "call":
      return compileCall(expression.callee, compileArguments(expression.args, compile), compile);
  }
}

/** The value of an expression that Jinja computes at compile time; `undefined` for other expressions. */
export function foldExpression(
  expression: JinjaExpression,
  { isVolatile }: Pick<JinjaScope, "isVolatile">,
): { readonly value: TemplateValue } | undefined {
  const open = isVolatile ? ["name", "call", "filter", "test"] : ["name", "call"];
  if (!isFoldable(expression, open)) return undefined;
  try {
    const compiled = compileExpression(expression, { scope: new JinjaScope(), soft: false });
    return { value: compiled(noFrame) };
  } catch (error) {
    // An expression that fails at compile time is left to the rendering, where it fails again.
    if (error instanceof TemplateError || error instanceof PythonError) return undefined;
    throw error;
  }
}

/** The frame for expressions without names. */
const noFrame = { slots: [], parent: undefined } as unknown as Frame;

/** True if no node of the given types occurs in the expression. */
function isFoldable(node: unknown, open: readonly unknown[]): boolean {
  if (typeof node !== "object" || node === null) return true;
  if ("type" in node && open.includes(node.type)) return false;
  return Object.values(node).every((child) => isFoldable(child, open));
}

/** True if Jinja computes the parts of a text at compile time. */
function isConstant(expression: JinjaExpression): boolean {
  if (expression.type === "constant") return true;
  if (expression.type !== "filter") return false;
  const { args } = expression.filter;
  const isPlain = args.rest === undefined && args.namedRest === undefined;
  const given = [...args.positional, ...args.named.map(([, value]) => value)];
  return isPlain && isConstant(expression.operand) && given.every(isConstant);
}

type Node<Type extends JinjaExpression["type"]> = Extract<JinjaExpression, { type: Type }>;

/** Compiles a name to its value, or to an undefined value that knows the name. */
export function compileName(name: string, scope: JinjaScope): Evaluate {
  const place = scope.find(name);
  const missing = new Undefined({ name });
  if (place === undefined) {
    return (frame) => {
      const value = frame.context.resolve(name);
      return value === undefined ? missing : value;
    };
  }
  const { depth, slot } = place;
  const valueOf = (frame: Frame): TemplateValue => {
    const value = frame.slots[slot];
    return value === undefined ? missing : value;
  };
  if (depth === 0) return valueOf;
  return (frame) => valueOf(frameAt(frame, depth));
}

function compileItems({ type, items }: Node<"list" | "tuple">, place: ExpressionPlace): Evaluate {
  const parts = items.map((item) => compileExpression(item, place));
  return type === "list"
    ? (frame) => parts.map((part) => part(frame))
    : (frame) => new Tuple(parts.map((part) => part(frame)));
}

function compileDict({ entries }: Node<"dict">, place: ExpressionPlace): Evaluate {
  const members = entries.map(([key, value]) => ({
    key: compileExpression(key, place),
    value: compileExpression(value, place),
  }));
  return (frame) => {
    const dict = new Map<TemplateValue, TemplateValue>();
    for (const { key, value } of members) dictSet(dict, key(frame), value(frame));
    return dict;
  };
}

function compileLogical(node: Node<"and" | "or">, place: ExpressionPlace): Evaluate {
  const left = compileExpression(node.left, place);
  const right = compileExpression(node.right, place);
  const decidedBy = node.type === "or";
  return (frame) => {
    const value = left(frame);
    return isTruthy(value) === decidedBy ? value : right(frame);
  };
}

function compileArithmetic(node: Node<"arithmetic">, place: ExpressionPlace): Evaluate {
  const { operator } = node;
  if (operator === "+") return compileSum(node, place);
  const left = compileExpression(node.left, place);
  const right = compileExpression(node.right, place);
  return (frame) => calculate(left(frame), operator, right(frame));
}

/** Compiles a sum. Templates mostly join several texts in a row, so chains are compiled together. */
function compileSum(node: Node<"arithmetic">, place: ExpressionPlace): Evaluate {
  const parts: Evaluate[] = [];
  let first: JinjaExpression = node;
  for (; first.type === "arithmetic" && first.operator === "+"; first = first.left) {
    parts.push(compileExpression(first.right, place));
  }
  parts.reverse();
  const begin = compileExpression(first, place);
  const count = parts.length;
  return (frame) => {
    let sum = begin(frame);
    for (let index = 0; index < count; index++) {
      const part = (parts[index] as Evaluate)(frame);
      sum =
        typeof sum === "string" && typeof part === "string"
          ? sum + part
          : calculate(sum, "+", part);
    }
    return sum;
  };
}

function compileConditional(node: Node<"conditional">, place: ExpressionPlace): Evaluate {
  const test = compileExpression(node.test, place);
  const value = compileExpression(node.value, place);
  const hint =
    `the inline if-expression on line ${node.line} evaluated to false and no else section was ` +
    "defined.";
  const otherwise: Evaluate =
    node.otherwise === undefined
      ? () => new Undefined({ hint })
      : compileExpression(node.otherwise, place);
  return (frame) => (isTruthy(test(frame)) ? value(frame) : otherwise(frame));
}

function compileSlice(node: Node<"slice">, place: ExpressionPlace): Evaluate {
  // Jinja computes constants at compile time and treats a failure as an undefined value.
  if (node.object.type === "constant" && typeof node.object.value !== "string") {
    const missing = new Undefined({ object: node.object.value, name: "slice" });
    return () => missing;
  }
  const object = compileExpression(node.object, place);
  const bound = (expression: JinjaExpression | undefined): Evaluate =>
    expression === undefined ? () => null : compileExpression(expression, place);
  const [start, stop, step] = [bound(node.start), bound(node.stop), bound(node.step)];
  return (frame) =>
    sliceOf(object(frame), { start: start(frame), stop: stop(frame), step: step(frame) });
}

function compileCompare(node: Node<"compare">, place: ExpressionPlace): Evaluate {
  const first = compileExpression(node.first, place);
  const rest = node.rest.map(({ operator, operand }) => ({
    operator,
    operand: compileExpression(operand, place),
  }));
  const [only] = rest;
  if (only !== undefined && rest.length === 1) {
    const { operator, operand } = only;
    const text = textOfConstant(node.rest[0]?.operand);
    if (text !== undefined && (operator === "==" || operator === "!=")) {
      const ifEqual = operator === "==";
      return (frame) => equals(first(frame), text) === ifEqual;
    }
    return (frame) => compare(first(frame), operator, operand(frame));
  }
  return (frame) => {
    let left = first(frame);
    for (const { operator, operand } of rest) {
      const right = operand(frame);
      if (!compare(left, operator, right)) return false;
      left = right;
    }
    return true;
  };
}

function textOfConstant(expression: JinjaExpression | undefined): string | undefined {
  const isText = expression?.type === "constant" && typeof expression.value === "string";
  return isText ? expression.value : undefined;
}

function compare(left: TemplateValue, operator: CompareOperator, right: TemplateValue): boolean {
  switch (operator) {
    case "==":
      return equals(left, right);
    case "!=":
      return !equals(left, right);
    case "in":
      spendOn(right);
      return contains(right, left);
    case "not in":
      spendOn(right);
      return !contains(right, left);
    default:
      return compareOrder(left, operator, right);
  }
}
