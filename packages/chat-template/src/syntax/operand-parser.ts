import type { JinjaArguments, JinjaExpression, JinjaFilter } from "./ast.ts";
import type { JinjaTokenCursor } from "./token-cursor.ts";

/** Parses a complete expression within an operand. */
export type ParseExpression = (cursor: JinjaTokenCursor) => JinjaExpression;

/** The places at which a list of expressions ends, besides the end of the tag. */
export interface TupleOptions {
  /** A name that ends the items, such as `recursive`. */
  readonly endName?: string;
  /** True if the list is in parentheses. Then it may be empty. */
  readonly parenthesised?: boolean;
}

/** Parses an expression, or several separated by commas, which make a tuple. */
export function parseTupleOf(
  cursor: JinjaTokenCursor,
  parse: ParseExpression,
  { endName, parenthesised = false }: TupleOptions,
): JinjaExpression {
  const items: JinjaExpression[] = [];
  let isTuple = false;
  while (!endsTuple(cursor, endName)) {
    items.push(parse(cursor));
    if (!cursor.skipOperator(",")) break;
    isTuple = true;
  }
  const [only] = items;
  if (!isTuple && only !== undefined) return only;
  if (!isTuple && !parenthesised) throw cursor.unexpected("an expression");
  return { type: "tuple", items };
}

function endsTuple(cursor: JinjaTokenCursor, endName: string | undefined): boolean {
  const { type } = cursor.current;
  if (type === "variable-end" || type === "block-end" || cursor.isOperator(")")) return true;
  return endName !== undefined && cursor.isName(endName);
}

/** Parses a name, a literal, or an expression in brackets. */
export function parsePrimary(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  const token = cursor.current;
  switch (token.type) {
    case "name":
      cursor.advance();
      return constants.get(token.value) ?? { type: "name", name: token.value };
    case "string":
      return { type: "constant", value: parseStrings(cursor) };
    case "integer":
    case "float":
      cursor.advance();
      return { type: "constant", value: token.value };
    default:
      return parseBracketed(cursor, parse);
  }
}

const constants: ReadonlyMap<string, JinjaExpression> = new Map(
  (
    [
      ["true", true],
      ["True", true],
      ["false", false],
      ["False", false],
      ["none", null],
      ["None", null],
    ] as const
  ).map(([name, value]) => [name, { type: "constant", value }]),
);

/** Parses adjacent strings, which are joined. */
function parseStrings(cursor: JinjaTokenCursor): string {
  let text = "";
  for (let { current } = cursor; current.type === "string"; { current } = cursor) {
    text += current.value;
    cursor.advance();
  }
  return text;
}

function parseBracketed(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaExpression {
  if (cursor.skipOperator("(")) {
    const tuple = parseTupleOf(cursor, parse, { parenthesised: true });
    cursor.expectOperator(")");
    return tuple;
  }
  if (cursor.skipOperator("[")) {
    return { type: "list", items: parseItems(cursor, "]", () => parse(cursor)) };
  }
  if (cursor.skipOperator("{")) {
    const entries = parseItems(cursor, "}", () => {
      const key = parse(cursor);
      cursor.expectOperator(":");
      return [key, parse(cursor)] as const;
    });
    return { type: "dict", entries };
  }
  throw cursor.unexpected("an expression");
}

/** Parses items separated by commas up to the closing bracket; a trailing comma is allowed. */
function parseItems<Item>(cursor: JinjaTokenCursor, close: string, parseItem: () => Item): Item[] {
  const items: Item[] = [];
  while (!cursor.isOperator(close)) {
    if (items.length > 0) cursor.expectOperator(",");
    if (cursor.isOperator(close)) break;
    items.push(parseItem());
  }
  cursor.expectOperator(close);
  return items;
}

/** Parses the arguments of a call, filter or test, parentheses included. */
export function parseArguments(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaArguments {
  const positional: JinjaExpression[] = [];
  const named: [string, JinjaExpression][] = [];
  let rest: JinjaExpression | undefined;
  let namedRest: JinjaExpression | undefined;
  const { line } = cursor;
  const assertOrder = (holds: boolean) => {
    if (!holds) throw cursor.problem("invalid order of arguments", line);
  };
  cursor.expectOperator("(");
  parseItems(cursor, ")", () => {
    if (cursor.skipOperator("*")) {
      assertOrder(rest === undefined && namedRest === undefined);
      rest = parse(cursor);
    } else if (cursor.skipOperator("**")) {
      assertOrder(namedRest === undefined);
      namedRest = parse(cursor);
    } else if (cursor.isName() && cursor.nextIs("operator", "=")) {
      assertOrder(namedRest === undefined);
      const name = cursor.expectName();
      cursor.advance();
      named.push([name, parse(cursor)]);
    } else {
      assertOrder(rest === undefined && namedRest === undefined && named.length === 0);
      positional.push(parse(cursor));
    }
  });
  return { positional, named, rest, namedRest };
}

/** No arguments. */
export const emptyArguments: JinjaArguments = {
  positional: [],
  named: [],
  rest: undefined,
  namedRest: undefined,
};

/** Parses a filter's or test's name, which may contain dots. */
export function parseDottedName(cursor: JinjaTokenCursor): string {
  let name = cursor.expectName();
  while (cursor.skipOperator(".")) name += `.${cursor.expectName()}`;
  return name;
}

/** Parses a filter's name and arguments, after the bar. */
export function parseFilterOf(cursor: JinjaTokenCursor, parse: ParseExpression): JinjaFilter {
  const { line } = cursor;
  const name = parseDottedName(cursor);
  const args = cursor.isOperator("(") ? parseArguments(cursor, parse) : emptyArguments;
  return { name, args, line };
}
