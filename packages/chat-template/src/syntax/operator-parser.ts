import type { CompareOperator, JinjaExpression } from "./ast.ts";
import type { ParseExpression } from "./operand-parser.ts";
import {
  emptyArguments,
  parseArguments,
  parseDottedName,
  parseFilterOf,
  parsePrimary,
} from "./operand-parser.ts";
import type { JinjaTokenCursor } from "./token-cursor.ts";
import type { ArithmeticOperator } from "../values/template-arithmetic.ts";

/**
 * Parses operators by their precedence in Jinja, loosest first: `or`, `and`, `not`, comparisons, `+ -`, `~`, `* /
 * // %`, `**`, signs, then suffixes of an operand: attributes, subscripts, calls, filters and tests.
 */
export function parseOperators(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  let left = parseAnd(cursor, parse);
  while (cursor.skipName("or")) left = { type: "or", left, right: parseAnd(cursor, parse) };
  return left;
}

function parseAnd(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  let left = parseNot(cursor, parse);
  while (cursor.skipName("and")) left = { type: "and", left, right: parseNot(cursor, parse) };
  return left;
}

function parseNot(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  if (cursor.skipName("not")) return { type: "not", operand: parseNot(cursor, parse) };
  return parseCompare(cursor, parse);
}

const compareOperators: ReadonlySet<string> = new Set(["==", "!=", "<", "<=", ">", ">="]);

function parseCompare(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  const first = parseSum(cursor, parse);
  const rest: { operator: CompareOperator; operand: JinjaExpression }[] = [];
  for (let operator = takeCompare(cursor); operator; operator = takeCompare(cursor)) {
    rest.push({ operator, operand: parseSum(cursor, parse) });
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

type Parse = typeof parseOperators;

function parseLeftToRight(operators: readonly ArithmeticOperator[], parseOperand: Parse): Parse {
  return (cursor, parse) => {
    let left = parseOperand(cursor, parse);
    for (;;) {
      const operator = operators.find((candidate) => cursor.isOperator(candidate));
      if (operator === undefined) return left;
      cursor.advance();
      left = { type: "arithmetic", operator, left, right: parseOperand(cursor, parse) };
    }
  };
}

const parsePower = parseLeftToRight(["**"], parseFiltered);
const parseProduct = parseLeftToRight(["*", "/", "//", "%"], parsePower);
const parseSum = parseLeftToRight(["+", "-"], parseConcat);

function parseConcat(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  const first = parseProduct(cursor, parse);
  const parts = [first];
  while (cursor.skipOperator("~")) parts.push(parseProduct(cursor, parse));
  return parts.length === 1 ? first : { type: "concat", parts };
}

function parseFiltered(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  return parseFiltersAndTests(cursor, parse, parseSigned(cursor, parse));
}

/** Parses a sign, which binds closer than a filter: `-1|abs` is the magnitude of -1. */
function parseSigned(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  const operator = cursor.isOperator("-") ? "-" : cursor.isOperator("+") ? "+" : undefined;
  if (operator === undefined) return parsePostfix(cursor, parse, parsePrimary(cursor, parse));
  cursor.advance();
  return parsePostfix(cursor, parse, {
    type: "sign",
    operator,
    operand: parseSigned(cursor, parse),
  });
}

function parsePostfix(
  cursor: JinjaTokenCursor,
  parse: ParseExpression,
  start: JinjaExpression,
): JinjaExpression {
  return parseSuffixes(start, (expression) => {
    if (cursor.skipOperator(".")) return parseMember(cursor, expression);
    if (cursor.skipOperator("[")) return parseSubscript(cursor, parse, expression);
    return parseCall(cursor, parse, expression);
  });
}

/** Parses suffixes until `parseSuffix` finds no more. */
function parseSuffixes(
  start: JinjaExpression,
  parseSuffix: (expression: JinjaExpression) => JinjaExpression | undefined,
): JinjaExpression {
  let expression = start;
  for (;;) {
    const longer = parseSuffix(expression);
    if (longer === undefined) return expression;
    expression = longer;
  }
}

function parseCall(
  cursor: JinjaTokenCursor,
  parse: ParseExpression,
  callee: JinjaExpression,
): JinjaExpression | undefined {
  if (!cursor.isOperator("(")) return undefined;
  return { type: "call", callee, args: parseArguments(cursor, parse) };
}

function parseMember(cursor: JinjaTokenCursor, object: JinjaExpression): JinjaExpression {
  const token = cursor.current;
  if (token.type === "integer") {
    cursor.advance();
    return { type: "item", object, key: { type: "constant", value: token.value } };
  }
  return { type: "attribute", object, name: cursor.expectName() };
}

function parseSubscript(
  cursor: JinjaTokenCursor,
  parse: ParseExpression,
  object: JinjaExpression,
): JinjaExpression {
  const bound = () =>
    cursor.isOperator(":") || cursor.isOperator("]") ? undefined : parse(cursor);
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
    if (!cursor.isOperator("]")) items.push(parse(cursor));
  }
  cursor.expectOperator("]");
  const key: JinjaExpression = items.length === 1 ? start : { type: "tuple", items };
  return { type: "item", object, key };
}

function parseFiltersAndTests(
  cursor: JinjaTokenCursor,
  parse: ParseExpression,
  start: JinjaExpression,
): JinjaExpression {
  return parseSuffixes(start, (expression) => {
    if (cursor.skipOperator("|")) {
      return { type: "filter", operand: expression, filter: parseFilterOf(cursor, parse) };
    }
    if (cursor.skipName("is")) return parseTest(cursor, parse, expression);
    return parseCall(cursor, parse, expression);
  });
}

const testArgumentOpeners: ReadonlySet<string> = new Set(["[", "{"]);
const namesAfterTests: ReadonlySet<string> = new Set(["else", "or", "and"]);

function parseTest(
  cursor: JinjaTokenCursor,
  parse: ParseExpression,
  operand: JinjaExpression,
): JinjaExpression {
  const negated = cursor.skipName("not");
  const { line } = cursor;
  const name = parseDottedName(cursor);
  let args = emptyArguments;
  if (cursor.isOperator("(")) {
    args = parseArguments(cursor, parse);
  } else if (startsTestArgument(cursor)) {
    if (cursor.isName("is")) throw cursor.problem("tests cannot follow each other");
    args = {
      ...emptyArguments,
      positional: [parsePostfix(cursor, parse, parsePrimary(cursor, parse))],
    };
  }
  const test: JinjaExpression = { type: "test", operand, test: { name, args, line } };
  return negated ? { type: "not", operand: test } : test;
}

function startsTestArgument({ current }: JinjaTokenCursor): boolean {
  if (current.type === "name") return !namesAfterTests.has(current.value);
  if (current.type === "operator") return testArgumentOpeners.has(current.value);
  return current.type === "string" || current.type === "integer" || current.type === "float";
}
