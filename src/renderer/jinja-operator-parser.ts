import type { CompareOperator, JinjaExpression } from "./jinja-ast.ts";
import {
  emptyArguments,
  parseArguments,
  parseDottedName,
  parseExpression,
  parseFilter,
  parsePrimary,
} from "./jinja-expression-parser.ts";
import type { JinjaTokenCursor } from "./jinja-token-cursor.ts";
import type { ArithmeticOperator } from "./template-arithmetic.ts";

/**
 * Parses operators by their precedence in Jinja, loosest first: `or`, `and`, `not`, comparisons,
 * `+ -`, `~`, `* / // %`, `**`, signs, then what follows an operand: attributes, subscripts, calls,
 * filters and tests.
 */
export function parseOperators(cursor: JinjaTokenCursor): JinjaExpression {
  let left = parseAnd(cursor);
  while (cursor.skipName("or")) left = { type: "or", left, right: parseAnd(cursor) };
  return left;
}

function parseAnd(cursor: JinjaTokenCursor): JinjaExpression {
  let left = parseNot(cursor);
  while (cursor.skipName("and")) left = { type: "and", left, right: parseNot(cursor) };
  return left;
}

function parseNot(cursor: JinjaTokenCursor): JinjaExpression {
  if (cursor.skipName("not")) return { type: "not", operand: parseNot(cursor) };
  return parseCompare(cursor);
}

const compareOperators: ReadonlySet<string> = new Set(["==", "!=", "<", "<=", ">", ">="]);

function parseCompare(cursor: JinjaTokenCursor): JinjaExpression {
  const first = parseSum(cursor);
  const rest: { operator: CompareOperator; operand: JinjaExpression }[] = [];
  for (let operator = takeCompare(cursor); operator; operator = takeCompare(cursor)) {
    rest.push({ operator, operand: parseSum(cursor) });
  }
  return rest.length === 0 ? first : { type: "compare", first, rest };
}

function takeCompare(cursor: JinjaTokenCursor): CompareOperator | undefined {
  const token = cursor.current;
  if (token.type === "operator" && compareOperators.has(token.value)) {
    cursor.advance();
    return token.value as CompareOperator;
  }
  if (cursor.skipName("in")) return "in";
  if (!cursor.isName("not") || !cursor.nextIs("name", "in")) return undefined;
  cursor.advance();
  cursor.advance();
  return "not in";
}

type Parse = (cursor: JinjaTokenCursor) => JinjaExpression;

function parseLeftToRight(operators: readonly ArithmeticOperator[], parseOperand: Parse): Parse {
  return (cursor) => {
    let left = parseOperand(cursor);
    for (;;) {
      const operator = operators.find((candidate) => cursor.isOperator(candidate));
      if (operator === undefined) return left;
      cursor.advance();
      left = { type: "arithmetic", operator, left, right: parseOperand(cursor) };
    }
  };
}

const parsePower = parseLeftToRight(["**"], (cursor) => parseUnary(cursor, true));
const parseProduct = parseLeftToRight(["*", "/", "//", "%"], parsePower);
const parseSum = parseLeftToRight(["+", "-"], parseConcat);

function parseConcat(cursor: JinjaTokenCursor): JinjaExpression {
  const first = parseProduct(cursor);
  const parts = [first];
  while (cursor.skipOperator("~")) parts.push(parseProduct(cursor));
  return parts.length === 1 ? first : { type: "concat", parts };
}

function parseUnary(cursor: JinjaTokenCursor, withFilters: boolean): JinjaExpression {
  let expression: JinjaExpression;
  const operator = cursor.isOperator("-") ? "-" : cursor.isOperator("+") ? "+" : undefined;
  if (operator === undefined) {
    expression = parsePrimary(cursor);
  } else {
    cursor.advance();
    expression = { type: "sign", operator, operand: parseUnary(cursor, false) };
  }
  expression = parsePostfix(cursor, expression);
  return withFilters ? parseFiltersAndTests(cursor, expression) : expression;
}

function parsePostfix(cursor: JinjaTokenCursor, start: JinjaExpression): JinjaExpression {
  let expression = start;
  for (;;) {
    if (cursor.skipOperator(".")) {
      expression = parseMember(cursor, expression);
    } else if (cursor.skipOperator("[")) {
      expression = parseSubscript(cursor, expression);
    } else if (cursor.isOperator("(")) {
      expression = { type: "call", callee: expression, args: parseArguments(cursor) };
    } else {
      return expression;
    }
  }
}

function parseMember(cursor: JinjaTokenCursor, object: JinjaExpression): JinjaExpression {
  const token = cursor.current;
  if (token.type === "integer") {
    cursor.advance();
    return { type: "item", object, key: { type: "constant", value: token.value } };
  }
  return { type: "attribute", object, name: cursor.expectName() };
}

function parseSubscript(cursor: JinjaTokenCursor, object: JinjaExpression): JinjaExpression {
  const bound = () =>
    cursor.isOperator(":") || cursor.isOperator("]") ? undefined : parseExpression(cursor);
  const start = bound();
  if (cursor.skipOperator(":")) {
    const stop = bound();
    const step = cursor.skipOperator(":") ? bound() : undefined;
    cursor.expectOperator("]");
    return { type: "slice", object, start, stop, step };
  }
  if (start === undefined) throw cursor.unexpected("a subscript");
  const items = [start];
  while (cursor.skipOperator(",")) {
    if (!cursor.isOperator("]")) items.push(parseExpression(cursor));
  }
  cursor.expectOperator("]");
  const key: JinjaExpression = items.length === 1 ? start : { type: "tuple", items };
  return { type: "item", object, key };
}

function parseFiltersAndTests(cursor: JinjaTokenCursor, start: JinjaExpression): JinjaExpression {
  let expression = start;
  for (;;) {
    if (cursor.skipOperator("|")) {
      expression = { type: "filter", operand: expression, filter: parseFilter(cursor) };
    } else if (cursor.skipName("is")) {
      expression = parseTest(cursor, expression);
    } else if (cursor.isOperator("(")) {
      expression = { type: "call", callee: expression, args: parseArguments(cursor) };
    } else {
      return expression;
    }
  }
}

const testArgumentOpeners: ReadonlySet<string> = new Set(["[", "{"]);
const namesAfterTests: ReadonlySet<string> = new Set(["else", "or", "and"]);

function parseTest(cursor: JinjaTokenCursor, operand: JinjaExpression): JinjaExpression {
  const negated = cursor.skipName("not");
  const { line } = cursor;
  const name = parseDottedName(cursor);
  let args = emptyArguments;
  if (cursor.isOperator("(")) {
    args = parseArguments(cursor);
  } else if (startsTestArgument(cursor)) {
    if (cursor.isName("is")) throw cursor.problem("tests cannot follow each other");
    args = { ...emptyArguments, positional: [parsePostfix(cursor, parsePrimary(cursor))] };
  }
  const test: JinjaExpression = { type: "test", operand, test: { name, args, line } };
  return negated ? { type: "not", operand: test } : test;
}

function startsTestArgument({ current }: JinjaTokenCursor): boolean {
  if (current.type === "name") return !namesAfterTests.has(current.value);
  if (current.type === "operator") return testArgumentOpeners.has(current.value);
  return current.type === "string" || current.type === "integer" || current.type === "float";
}
