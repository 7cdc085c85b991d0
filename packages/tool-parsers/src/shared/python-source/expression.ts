import { PythonError, type PyValue } from "../../../../python-values/src/index.ts";
import { keywords, readNumber, TokenReader, type Token } from "./tokens.ts";
import { syntaxError } from "./syntax-error.ts";

/** A Python expression, with the details that its readers need. */
export type Expression = ExpressionKind & {
  /**
   * The start in the source, without parentheses around the expression, in UTF-16 code units;
   * `\r\n` counts as one.
   */
  readonly start: number;
};

type ExpressionKind =
  | { readonly type: "constant"; readonly value: PyValue }
  /** A constant that JSON cannot represent. */
  | {
      readonly type: "foreign";
      readonly kind: "bytes" | "imaginary" | "formatted" | "ellipsis";
      /** The text of a formatted string without placeholders. */
      readonly text?: string;
    }
  | { readonly type: "tuple" | "set"; readonly items: readonly Expression[] }
  | {
      readonly type: "list";
      readonly items: readonly Expression[];
      /** The starts of the items, counted as `start`, with parentheses around them. */
      readonly starts: readonly number[];
    }
  | { readonly type: "dict"; readonly entries: readonly DictEntry[] }
  | { readonly type: "name"; readonly id: string }
  | { readonly type: "attribute"; readonly object: Expression; readonly attribute: string }
  | {
      readonly type: "call";
      readonly callee: Expression;
      /** The place of the bracket after the callee, counted as `start`. */
      readonly calleeEnd: number;
      readonly keywords: readonly KeywordArgument[];
      /** True if some argument has no name. */
      readonly hasPositional: boolean;
    }
  | { readonly type: "unary"; readonly operator: string; readonly operand: Expression }
  | {
      readonly type: "binary";
      readonly operator: string;
      readonly left: Expression;
      readonly right: Expression;
    }
  /** Anything else that is valid Python. */
  | { readonly type: "other"; readonly kind: OtherKind };

/** Kinds of expressions without further details. */
export type OtherKind =
  | "assignment"
  | "await"
  | "comprehension"
  | "conditional"
  | "lambda"
  | "logic"
  | "power"
  | "starred"
  | "subscript"
  | "yield";

/** An entry of a dictionary display. The key is absent for an unpacked dictionary (`**x`). */
export interface DictEntry {
  readonly key?: Expression;
  readonly value: Expression;
}

/** A keyword argument. The name is absent for an unpacked dictionary (`**x`). */
interface KeywordArgument {
  readonly name?: string;
  readonly value: Expression;
}

/** Maximum nesting that is read. CPython's parser refuses expressions that exhaust its stack. */
const MAX_DEPTH = 1000;

/** Binary operators by precedence, loosest first. Comparisons and logic yield `other`. */
const binaryLevels: readonly (readonly string[])[] = [
  ["or"],
  ["and"],
  ["<", ">", "==", ">=", "<=", "!=", "in", "is", "not in"],
  ["|"],
  ["^"],
  ["&"],
  ["<<", ">>"],
  ["+", "-"],
  ["*", "/", "//", "%", "@"],
];

/**
 * Reads Python source that is one expression (`eval` mode), as CPython 3.11 does.
 *
 * @throws PythonError `SyntaxError`, or `ValueError` for text that CPython refuses to tokenize.
 */
export function parseExpression(source: string): Expression {
  const parser = new ExpressionParser(source);
  parser.skipBlankLines();
  const expression = parser.readExpressions();
  parser.skipNewlines();
  parser.expectEnd();
  return expression;
}

/**
 * Reads Python source (`exec` mode) whose statements are expressions, assignments or returns, and
 * returns the value of the first one; `undefined` for source without statements.
 *
 * @throws PythonError as `parseExpression()` does, also for statements of other kinds.
 */
export function parseFirstStatement(source: string): Expression | undefined {
  const parser = new ExpressionParser(source);
  parser.skipBlankLines();
  let first: Expression | undefined;
  while (!parser.isAtEnd()) {
    const statement = parser.readStatement();
    first ??= statement;
    parser.endStatement();
  }
  return first;
}

class ExpressionParser {
  readonly #reader: TokenReader;
  readonly #source: string;
  #token: Token;
  /** The start of `#token`. */
  #start: number;
  #lookahead: Token | undefined;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
    this.#reader = new TokenReader(source);
    this.#token = this.#reader.next();
    this.#start = this.#reader.start;
  }

  isAtEnd(): boolean {
    return this.#token.type === "end";
  }

  expectEnd(): void {
    if (!this.isAtEnd()) throw syntaxError("invalid syntax");
  }

  skipNewlines(): void {
    while (this.#token.type === "newline") this.#advance();
  }

  /** Skips blank lines. The first line with a token must not be indented. */
  skipBlankLines(): void {
    const firstLine = /^(?:[ \t\f]*(?:#[^\r\n]*)?[\r\n]+)*/.exec(this.#source)?.[0] ?? "";
    if (/^[ \t]/.test(this.#source.slice(firstLine.length)) && !/^\s*$/.test(this.#source)) {
      throw syntaxError("unexpected indent");
    }
    this.skipNewlines();
  }

  endStatement(): void {
    if (this.#takes(";")) {
      if (this.#token.type === "newline") this.skipNewlines();
      return;
    }
    if (this.isAtEnd()) return;
    if (this.#token.type !== "newline") throw syntaxError("invalid syntax");
    this.skipNewlines();
  }

  /** The value of a statement: of an expression, an assignment, or a return. */
  readStatement(): Expression {
    if (this.#takes("return")) return this.readExpressions();
    let value = this.readExpressions();
    while (this.#takes("=")) value = this.readExpressions();
    return value;
  }

  /** Reads one expression, or several with commas, which make a tuple. */
  readExpressions(): Expression {
    const first = this.#readItem();
    if (!this.#is(",")) return first;
    const items = [first];
    while (this.#takes(",")) {
      if (!this.#startsExpression()) break;
      items.push(this.#readItem());
    }
    return { type: "tuple", items, start: first.start };
  }

  #advance(): Token {
    const token = this.#token;
    this.#token = this.#lookahead ?? this.#reader.next();
    this.#start = this.#reader.start;
    this.#lookahead = undefined;
    return token;
  }

  #peek(): Token {
    this.#lookahead ??= this.#reader.next();
    return this.#lookahead;
  }

  /** True if the token is this operator or keyword. */
  #is(text: string): boolean {
    const token = this.#token;
    return (token.type === "operator" || token.type === "name") && token.text === text;
  }

  #takes(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#advance();
    return true;
  }

  #expect(text: string): void {
    if (!this.#takes(text)) throw syntaxError(`expected ${text}`);
  }

  #startsExpression(): boolean {
    const token = this.#token;
    if (token.type === "operator") return /^(?:[([{+\-~*]|\.\.\.)$/.test(token.text);
    if (token.type === "name") {
      return !keywords.has(token.text) || /^(?:True|False|None|not|lambda|await)$/.test(token.text);
    }
    return token.type !== "newline" && token.type !== "end";
  }

  /** Reads an expression between commas: starred, named, or plain. */
  #readItem(): Expression {
    const start = this.#start;
    if (this.#takes("*")) {
      this.#readBinary(3);
      return otherOf("starred", start);
    }
    const expression = this.#readExpression();
    if (this.#is(":=")) {
      if (expression.type !== "name") throw syntaxError("cannot assign");
      this.#advance();
      this.#readExpression();
      return otherOf("assignment", start);
    }
    return expression;
  }

  #readExpression(): Expression {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new PythonError("RecursionError", "expression too deep");
    const expression = this.#is("lambda") ? this.#readLambda() : this.#readConditional();
    this.#depth -= 1;
    return expression;
  }

  #readConditional(): Expression {
    const expression = this.#readBinary(0);
    if (!this.#takes("if")) return expression;
    this.#readBinary(0);
    this.#expect("else");
    this.#readExpression();
    return otherOf("conditional", expression.start);
  }

  #readLambda(): Expression {
    const start = this.#start;
    this.#expect("lambda");
    while (!this.#is(":")) {
      if (!this.#takes("*") && !this.#takes("**") && !this.#takes("/")) this.#readIdentifier();
      if (this.#takes("=")) this.#readExpression();
      if (!this.#takes(",")) break;
    }
    this.#expect(":");
    this.#readExpression();
    return otherOf("lambda", start);
  }

  #readBinary(level: number): Expression {
    const operators = binaryLevels[level];
    if (operators === undefined) return this.#readUnary();
    if (level === 2 && this.#is("not")) return this.#readNot();
    let left = this.#readBinary(level + 1);
    for (;;) {
      const operator = this.#takeOperator(operators);
      if (operator === undefined) return left;
      const right = this.#readBinary(level + 1);
      const { start } = left;
      left = level < 3 ? otherOf("logic", start) : { type: "binary", operator, left, right, start };
    }
  }

  #readNot(): Expression {
    const start = this.#start;
    while (this.#takes("not"));
    this.#readBinary(2);
    return otherOf("logic", start);
  }

  #takeOperator(operators: readonly string[]): string | undefined {
    const operator = operators.find((candidate) => this.#is(candidate));
    if (operator !== undefined) {
      this.#advance();
      if (operator === "is") this.#takes("not");
      return operator;
    }
    if (!operators.includes("not in") || !this.#is("not")) return undefined;
    this.#advance();
    this.#expect("in");
    return "not in";
  }

  #readUnary(): Expression {
    const signs: { readonly operator: string; readonly start: number }[] = [];
    while (this.#is("-") || this.#is("+") || this.#is("~")) {
      const start = this.#start;
      signs.push({ operator: (this.#advance() as { text: string }).text, start });
    }
    let expression = this.#readPower();
    if (signs.length > MAX_DEPTH) throw new PythonError("RecursionError", "expression too deep");
    for (const { operator, start } of signs.toReversed()) {
      expression = { type: "unary", operator, operand: expression, start };
    }
    return expression;
  }

  #readPower(): Expression {
    const start = this.#start;
    const awaited = this.#takes("await");
    const expression = this.#readPrimary();
    if (!this.#takes("**")) return awaited ? otherOf("await", start) : expression;
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new PythonError("RecursionError", "expression too deep");
    this.#readUnary();
    this.#depth -= 1;
    return otherOf("power", start);
  }

  #readPrimary(): Expression {
    let expression = this.#readAtom();
    const { start } = expression;
    for (;;) {
      const end = this.#start;
      if (this.#takes("(")) {
        const callee = expression;
        expression = { type: "call", callee, calleeEnd: end, ...this.#readArguments(), start };
      } else if (this.#takes(".")) {
        const object = expression;
        expression = { type: "attribute", object, attribute: this.#readIdentifier(), start };
      } else if (this.#takes("[")) {
        this.#readSubscript();
        expression = otherOf("subscript", start);
      } else {
        return expression;
      }
    }
  }

  #readIdentifier(): string {
    const token = this.#advance();
    if (token.type !== "name" || keywords.has(token.text)) throw syntaxError("expected a name");
    return token.text;
  }

  #readSubscript(): void {
    do {
      if (this.#is("]")) break;
      if (!this.#is(":")) this.#readItem();
      while (this.#takes(":")) {
        if (!this.#is(":") && !this.#is(",") && !this.#is("]")) this.#readExpression();
      }
    } while (this.#takes(","));
    this.#expect("]");
  }

  /**
   * Reads the arguments of a call and its closing bracket. Positional arguments are only checked.
   */
  #readArguments(): { keywords: KeywordArgument[]; hasPositional: boolean } {
    const found: KeywordArgument[] = [];
    let hasPositional = false;
    let unpacked = false;
    while (!this.#is(")")) {
      if (this.#takes("**")) {
        unpacked = true;
        found.push({ value: this.#readExpression() });
      } else if (this.#token.type === "name" && this.#isKeywordArgument()) {
        const name = this.#readIdentifier();
        this.#expect("=");
        found.push({ name, value: this.#readExpression() });
      } else {
        const starred = this.#is("*");
        if (unpacked || (found.length > 0 && !starred)) throw syntaxError("positional argument");
        this.#readItem();
        hasPositional = true;
        if (this.#readComprehension()) break;
      }
      if (!this.#takes(",")) break;
    }
    this.#expect(")");
    return { keywords: found, hasPositional };
  }

  #isKeywordArgument(): boolean {
    const next = this.#peek();
    return next.type === "operator" && next.text === "=";
  }

  /** Reads `for … in … if …`. Returns false if there is none. */
  #readComprehension(): boolean {
    if (!this.#is("for") && !this.#is("async")) return false;
    while (this.#is("for") || this.#is("async")) {
      this.#takes("async");
      this.#expect("for");
      this.#readTargets();
      this.#expect("in");
      this.#readBinary(0);
      while (this.#takes("if")) this.#readBinary(0);
    }
    return true;
  }

  #readTargets(): void {
    do {
      if (this.#is("in")) return;
      this.#takes("*");
      this.#readBinary(3);
    } while (this.#takes(","));
  }

  #readAtom(): Expression {
    const start = this.#start;
    const token = this.#advance();
    switch (token.type) {
      case "number":
        return { type: "constant", value: readNumber(token), start };
      case "string":
      case "foreign":
        return { ...this.#readStrings(token), start };
      case "name":
        return { ...readName(token.text), start };
      case "operator":
        if (token.text === "(") return this.#readParenthesised(start);
        if (token.text === "[") return this.#readList(start);
        if (token.text === "{") return this.#readBraces(start);
        if (token.text === "...") return { type: "foreign", kind: "ellipsis", start };
        throw syntaxError("invalid syntax");
      default:
        throw syntaxError("invalid syntax");
    }
  }

  /** Joins adjacent strings. */
  #readStrings(first: Token): ExpressionKind {
    if (first.type === "foreign" && first.kind === "imaginary") {
      return { type: "foreign", kind: "imaginary" };
    }
    const parts: (string | undefined)[] = [];
    const kinds = new Set<"bytes" | "text" | "formatted">();
    let token = first;
    for (;;) {
      if (token.type === "string") parts.push(token.value);
      else if (token.type === "foreign") parts.push(token.text);
      kinds.add(token.type === "foreign" ? (token.kind as "bytes" | "formatted") : "text");
      const next = this.#token;
      if (next.type !== "string" && (next.type !== "foreign" || next.kind === "imaginary")) break;
      token = this.#advance();
    }
    if (kinds.has("bytes") && kinds.size > 1) throw syntaxError("cannot mix bytes and strings");
    if (kinds.has("bytes")) return { type: "foreign", kind: "bytes" };
    if (kinds.has("formatted")) {
      const isPlain = !parts.includes(undefined);
      return { type: "foreign", kind: "formatted", ...(isPlain && { text: parts.join("") }) };
    }
    return { type: "constant", value: parts.join("") };
  }

  #readParenthesised(start: number): Expression {
    if (this.#takes(")")) return { type: "tuple", items: [], start };
    if (this.#takes("yield")) {
      this.#takes("from");
      if (!this.#is(")")) this.readExpressions();
      this.#expect(")");
      return otherOf("yield", start);
    }
    const starred = this.#is("*");
    const expression = this.readExpressions();
    const comprehension = this.#readComprehension();
    this.#expect(")");
    if (starred && expression.type !== "tuple") throw syntaxError("cannot use starred here");
    return comprehension ? otherOf("comprehension", start) : expression;
  }

  #readList(start: number): Expression {
    const items: Expression[] = [];
    const starts: number[] = [];
    while (!this.#is("]")) {
      starts.push(this.#start);
      items.push(this.#readItem());
      if (items.length === 1 && this.#readComprehension()) {
        this.#expect("]");
        return otherOf("comprehension", start);
      }
      if (!this.#takes(",")) break;
    }
    this.#expect("]");
    return { type: "list", items, starts, start };
  }

  #readBraces(start: number): Expression {
    if (this.#takes("}")) return { type: "dict", entries: [], start };
    if (this.#is("**")) return this.#readDict([], start);
    const first = this.#readItem();
    if (this.#takes(":")) {
      const value = this.#readExpression();
      if (this.#readComprehension()) {
        this.#expect("}");
        return otherOf("comprehension", start);
      }
      return this.#readDict([{ key: first, value }], start);
    }
    if (this.#readComprehension()) {
      this.#expect("}");
      return otherOf("comprehension", start);
    }
    const items = [first];
    while (this.#takes(",") && !this.#is("}")) items.push(this.#readItem());
    this.#expect("}");
    return { type: "set", items, start };
  }

  #readDict(entries: DictEntry[], start: number): Expression {
    if (entries.length > 0 && !this.#takes(",")) {
      this.#expect("}");
      return { type: "dict", entries, start };
    }
    while (!this.#is("}")) {
      if (this.#takes("**")) {
        entries.push({ value: this.#readBinary(3) });
      } else {
        const key = this.#readExpression();
        this.#expect(":");
        entries.push({ key, value: this.#readExpression() });
      }
      if (!this.#takes(",")) break;
    }
    this.#expect("}");
    return { type: "dict", entries, start };
  }
}

function otherOf(kind: OtherKind, start: number): Expression {
  return { type: "other", kind, start };
}

function readName(text: string): ExpressionKind {
  if (text === "True") return { type: "constant", value: true };
  if (text === "False") return { type: "constant", value: false };
  if (text === "None") return { type: "constant", value: null };
  if (keywords.has(text)) throw syntaxError("invalid syntax");
  return { type: "name", id: text };
}
