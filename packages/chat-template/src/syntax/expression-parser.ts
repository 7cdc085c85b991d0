import type { JinjaExpression, JinjaFilter } from "./ast.ts";
import type { TupleOptions } from "./operand-parser.ts";
import { parseFilterOf, parsePrimary, parseTupleOf } from "./operand-parser.ts";
import { parseOperators } from "./operator-parser.ts";
import type { JinjaTokenCursor } from "./token-cursor.ts";

/** Parses one expression, up to and including `… if … else …`. */
export function parseExpression(cursor: JinjaTokenCursor): JinjaExpression {
  return cursor.nested(() => parseConditional(cursor));
}

function parseConditional(cursor: JinjaTokenCursor): JinjaExpression {
  let expression = parseUnconditional(cursor);
  let line = cursor.line;
  while (cursor.skipName("if")) {
    const test = parseUnconditional(cursor);
    const otherwise = cursor.skipName("else") ? parseExpression(cursor) : undefined;
    expression = { type: "conditional", test, value: expression, otherwise, line };
    line = cursor.line;
  }
  return expression;
}

function parseUnconditional(cursor: JinjaTokenCursor): JinjaExpression {
  return parseOperators(cursor, parseExpression);
}

/** Parses an expression, or several separated by commas, which make a tuple. */
export function parseTuple(
  cursor: JinjaTokenCursor,
  {
    conditional = true,
    ...options
  }: TupleOptions & {
    /** True if items may contain `… if … else …`. Default true. */
    readonly conditional?: boolean;
  } = {},
): JinjaExpression {
  return parseTupleOf(cursor, conditional ? parseExpression : parseUnconditional, options);
}

/** Parses the target of an assignment. */
export function parseTargetExpression(cursor: JinjaTokenCursor): JinjaExpression {
  return parsePrimary(cursor, parseExpression);
}

/** Parses a filter's name and arguments, after the bar. */
export function parseFilter(cursor: JinjaTokenCursor): JinjaFilter {
  return parseFilterOf(cursor, parseExpression);
}
