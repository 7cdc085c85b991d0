import type {
  JinjaExpression,
  JinjaFilter,
  JinjaFor,
  JinjaMacro,
  JinjaParameter,
  JinjaStatement,
  JinjaTarget,
} from "./ast.ts";
import { parseExpression, parseFilter, parseTuple } from "./expression-parser.ts";
import { tokenizeTemplate } from "./lexer.ts";
import { parseTarget, parseTargetName } from "./target-parser.ts";
import { JinjaTokenCursor } from "./token-cursor.ts";

/**
 * Parses a template.
 *
 * **Source:** the Jinja documentation, "Template Designer Documentation"; `break`, `continue` and `generation` as
 * the transformers library adds them.
 *
 * @throws UsageError naming the line if the template is invalid, or uses features that chat templates do not need:
 * other templates, and blocks.
 */
export function parseTemplate(source: string): readonly JinjaStatement[] {
  const cursor = new JinjaTokenCursor(tokenizeTemplate(source));
  const { body } = parseBody(cursor, []);
  return body;
}

/** Parses statements up to one of the tags `ends`, skips that tag's name and returns it. */
function parseBody(
  cursor: JinjaTokenCursor,
  ends: readonly string[],
): { readonly body: readonly JinjaStatement[]; readonly end: string } {
  return cursor.nested(() => parseStatements(cursor, ends));
}

function parseStatements(cursor: JinjaTokenCursor, ends: readonly string[]) {
  const body: JinjaStatement[] = [];
  const { line } = cursor;
  for (;;) {
    const token = cursor.advance();
    if (token.type === "data") {
      body.push({ type: "text", text: token.value });
    } else if (token.type === "variable-begin") {
      body.push({ type: "output", value: parseTuple(cursor) });
      cursor.expectType("variable-end", "'}}'");
    } else if (token.type === "block-begin") {
      const end = ends.find((name) => cursor.skipName(name));
      if (end !== undefined) return { body, end };
      body.push(...parseStatement(cursor));
      cursor.expectType("block-end", "'%}'");
    } else if (ends.length === 0) {
      return { body, end: "" };
    } else {
      throw cursor.problem(`the tag is not closed, expected '${ends.join("' or '")}'`, line);
    }
  }
}

/** Parses the rest of a tag, the body, and the name of the tag that ends it. */
function parseBlock(cursor: JinjaTokenCursor, ends: readonly string[]) {
  cursor.skipOperator(":");
  cursor.expectType("block-end", "'%}'");
  return parseBody(cursor, ends);
}

function parseStatement(cursor: JinjaTokenCursor): readonly JinjaStatement[] {
  const { line } = cursor;
  const tag = cursor.expectName();
  switch (tag) {
    case "set":
      return [parseSet(cursor)];
    case "for":
      return [parseFor(cursor, line)];
    case "if":
      return [parseIf(cursor)];
    case "macro": {
      const name = parseTargetName(cursor);
      const parameters = parseParameters(cursor);
      return [macro({ name, parameters, line }, parseBlock(cursor, ["endmacro"]))];
    }
    case "call":
      return [parseCallBlock(cursor, line)];
    case "filter": {
      const filters = parseFilters(cursor, [parseFilter(cursor)]);
      return [{ type: "filter-block", filters, body: parseBlock(cursor, ["endfilter"]).body }];
    }
    case "with":
      return [parseWith(cursor)];
    case "autoescape":
      return [parseAutoescape(cursor)];
    case "generation": {
      const body = parseBlock(cursor, ["endgeneration"]);
      return [{ type: "generation", body: macro({ name: undefined, parameters: [], line }, body) }];
    }
    case "print":
      return parsePrint(cursor);
    case "break":
    case "continue":
      return [{ type: tag, line }];
    default:
      throw cursor.problem(`unknown or unsupported tag '${tag}'`, line);
  }
}

function macro(
  head: Pick<JinjaMacro, "name" | "parameters" | "line">,
  { body }: { readonly body: readonly JinjaStatement[] },
): JinjaMacro {
  return { type: "macro", ...head, body };
}

function parseSet(cursor: JinjaTokenCursor): JinjaStatement {
  const target = parseTarget(cursor, { withNamespace: true });
  if (cursor.skipOperator("=")) return { type: "set", target, value: parseTuple(cursor) };
  const filters = parseFilters(cursor, []);
  return { type: "set-block", target, filters, body: parseBlock(cursor, ["endset"]).body };
}

function parseFilters(cursor: JinjaTokenCursor, first: readonly JinjaFilter[]): JinjaFilter[] {
  const filters = [...first];
  while (cursor.skipOperator("|")) filters.push(parseFilter(cursor));
  return filters;
}

function parseFor(cursor: JinjaTokenCursor, line: number): JinjaFor {
  const target = parseTarget(cursor, { withNamespace: false });
  if (!cursor.skipName("in")) throw cursor.unexpected("'in'");
  const iterable = parseTuple(cursor, { conditional: false, endName: "recursive" });
  const filter = cursor.skipName("if") ? parseExpression(cursor) : undefined;
  const recursive = cursor.skipName("recursive");
  const { body, end } = parseBlock(cursor, ["endfor", "else"]);
  const otherwise = end === "else" ? parseBlock(cursor, ["endfor"]).body : [];
  return { type: "for", target, iterable, filter, recursive, line, body, otherwise };
}

function parseIf(cursor: JinjaTokenCursor): JinjaStatement {
  const branches: { test: JinjaExpression; body: readonly JinjaStatement[] }[] = [];
  for (;;) {
    const test = parseTuple(cursor, { conditional: false });
    const { body, end } = parseBlock(cursor, ["elif", "else", "endif"]);
    branches.push({ test, body });
    if (end === "elif") continue;
    const otherwise = end === "else" ? parseBlock(cursor, ["endif"]).body : [];
    return { type: "if", branches, otherwise };
  }
}

function parseCallBlock(cursor: JinjaTokenCursor, line: number): JinjaStatement {
  const parameters = cursor.isOperator("(") ? parseParameters(cursor) : [];
  const call = parseExpression(cursor);
  if (call.type !== "call") throw cursor.problem("expected a call", line);
  const caller = macro({ name: undefined, parameters, line }, parseBlock(cursor, ["endcall"]));
  return { type: "call-block", callee: call.callee, args: call.args, caller };
}

function parseWith(cursor: JinjaTokenCursor): JinjaStatement {
  const targets: { target: JinjaTarget; value: JinjaExpression }[] = [];
  while (cursor.current.type !== "block-end") {
    if (targets.length > 0) cursor.expectOperator(",");
    const target = parseTarget(cursor, { withNamespace: false });
    cursor.expectOperator("=");
    targets.push({ target, value: parseExpression(cursor) });
  }
  return { type: "with", targets, body: parseBlock(cursor, ["endwith"]).body };
}

/** Parses a frame with its own escaping. */
function parseAutoescape(cursor: JinjaTokenCursor): JinjaStatement {
  const autoescape = parseExpression(cursor);
  const { body } = parseBlock(cursor, ["endautoescape"]);
  return { type: "with", autoescape, targets: [], body };
}

function parsePrint(cursor: JinjaTokenCursor): readonly JinjaStatement[] {
  const outputs: JinjaStatement[] = [];
  while (cursor.current.type !== "block-end") {
    if (outputs.length > 0) cursor.expectOperator(",");
    outputs.push({ type: "output", value: parseExpression(cursor) });
  }
  return outputs;
}

function parseParameters(cursor: JinjaTokenCursor): readonly JinjaParameter[] {
  const parameters: JinjaParameter[] = [];
  cursor.expectOperator("(");
  while (!cursor.isOperator(")")) {
    if (parameters.length > 0) cursor.expectOperator(",");
    const name = parseTargetName(cursor);
    const fallback = cursor.skipOperator("=") ? parseExpression(cursor) : undefined;
    if (fallback === undefined && parameters.at(-1)?.fallback !== undefined) {
      throw cursor.problem("a parameter without a default follows one with a default");
    }
    parameters.push({ name, fallback });
  }
  cursor.expectOperator(")");
  return parameters;
}
