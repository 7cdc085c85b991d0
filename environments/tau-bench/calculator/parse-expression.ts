import type { Token } from "../../../packages/tool-parsers/src/shared/python-source/tokens.ts";
import {
  readNumber,
  TokenReader,
} from "../../../packages/tool-parsers/src/shared/python-source/tokens.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import type { BinaryOperator, Call, ChainLink, Expression, Factor } from "./expression.ts";

/** CPython's limit on nested grammar rules, and the number of rules from an expression down to a number. */
const maxRuleDepth = 6000;
const rulesToAtom = 24;
const rulesPerParenthesis = 28;
const rulesPerPower = 2;

/**
 * Parses an expression of digits, `+ - * / ( ) .` and spaces like CPython's `eval()`, with the texts of its syntax
 * errors. The first pass only accepts; if it fails, a second pass searches for known mistakes.
 *
 * **Source:** CPython 3.11, `Grammar/python.gram` and `Parser/pegen_errors.c`.
 *
 * @throws PythonError `SyntaxError`, or `MemoryError` if rules nest too deep.
 */
export function parseExpression(text: string): Expression {
  if (/^ *$/.test(text)) throw placed("invalid syntax", 0);
  const parser = new Parser(text);
  try {
    return parser.parse(false) ?? parser.parse(true) ?? parser.fail("invalid syntax");
  } catch (error) {
    if (!(error instanceof PythonError) || error.exception !== "SyntaxError") throw error;
    // An invalid token takes precedence over a grammar mistake that the parser found first.
    const wrongToken = error instanceof GrammarError ? parser.findWrongToken() : undefined;
    throw placed((wrongToken ?? error).message, 1);
  }
}

/** A `SyntaxError` of `eval()`, as Python prints it. */
function placed(problem: string, line: 0 | 1): PythonError {
  return new PythonError("SyntaxError", `${problem} (<string>, line ${line})`);
}

/** A mistake of grammar, rather than of a single token. */
class GrammarError extends PythonError {
  constructor(problem: string) {
    super("SyntaxError", problem);
  }
}

/** The end of a rule and its value; `undefined` if the rule does not match. */
type Match<Value> = { readonly value: Value; readonly end: number } | undefined;

/**
 * A recursive descent over the grammar's rules, each from an index of the tokens. Results of the expression rule
 * are cached by index, so that trying alternatives stays linear.
 */
class Parser {
  readonly #reader: TokenReader;
  readonly #tokens: Token[] = [];
  /** The number of open parentheses after each token. */
  readonly #levels: number[] = [];
  #memo = new Map<string, Match<Expression>>();
  #findsMistakes = false;
  #depth = rulesToAtom;

  constructor(text: string) {
    // CPython strips the start of the text, so it counts as unindented.
    this.#reader = new TokenReader(text.trimStart());
  }

  /** Parses the complete expression; with `findsMistakes`, throws known mistakes. */
  parse(findsMistakes: boolean): Expression | undefined {
    this.#findsMistakes = findsMistakes;
    this.#memo = new Map();
    this.#depth = rulesToAtom;
    const match = this.#expression(0);
    return match !== undefined && this.#token(match.end).type === "end" ? match.value : undefined;
  }

  fail(problem: string): never {
    throw new GrammarError(problem);
  }

  /** The error of a later invalid token; unclosed parentheses do not count. */
  findWrongToken(): PythonError | undefined {
    try {
      while (!this.#reader.isAtEnd()) this.#reader.next();
    } catch (error) {
      if (error instanceof PythonError) return error;
      throw error;
    }
    return undefined;
  }

  #token(place: number): Token {
    while (this.#tokens.length <= place) {
      this.#tokens.push(this.#reader.next());
      this.#levels.push(this.#reader.openBrackets);
    }
    return this.#tokens[place] as Token;
  }

  #is(place: number, operator: string): boolean {
    const token = this.#token(place);
    return token.type === "operator" && token.text === operator;
  }

  /** Parses an expression; in the second pass, two adjacent ones in parentheses are a mistake. */
  #expression(place: number): Match<Expression> {
    const key = `${this.#findsMistakes} ${place}`;
    if (this.#memo.has(key)) return this.#memo.get(key);
    const match = this.#sum(place);
    if (this.#findsMistakes && match !== undefined) {
      this.#findsMistakes = false;
      const next = this.#expression(match.end);
      this.#findsMistakes = true;
      if (next !== undefined && (this.#levels[next.end - 1] ?? 0) > 0) {
        this.fail("invalid syntax. Perhaps you forgot a comma?");
      }
    }
    this.#memo.set(key, match);
    return match;
  }

  #sum(place: number): Match<Expression> {
    return this.#chain(place, ["+", "-"], (at) => this.#term(at));
  }

  #term(place: number): Match<Expression> {
    return this.#chain(place, ["*", "/", "//"], (at) => this.#factor(at));
  }

  #chain(
    place: number,
    operators: readonly BinaryOperator[],
    operandAt: (place: number) => Match<Expression>,
  ): Match<Expression> {
    const first = operandAt(place);
    if (first === undefined) return undefined;
    const rest: ChainLink[] = [];
    let { end } = first;
    for (;;) {
      const operator = operators.find((candidate) => this.#is(end, candidate));
      const operand = operator === undefined ? undefined : operandAt(end + 1);
      if (operator === undefined || operand === undefined) break;
      rest.push({ operator, operand: operand.value });
      end = operand.end;
    }
    return {
      value: rest.length === 0 ? first.value : { type: "chain", first: first.value, rest },
      end,
    };
  }

  /** Parses signs, a primary, and its powers; a power with an invalid exponent is left unread. */
  #factor(place: number): Match<Expression> {
    const depth = this.#depth;
    const factors: Factor[] = [];
    let end = place;
    for (let at = place; ; at = end + 1) {
      const factor = this.#signedPrimary(at);
      if (factor === undefined) break;
      factors.push(factor.value);
      end = factor.end;
      if (!this.#is(end, "**")) break;
      this.#descend(rulesPerPower);
    }
    this.#depth = depth;
    const [only] = factors;
    if (only === undefined) return undefined;
    const isPlain = factors.length === 1 && only.signs.length === 0;
    return { value: isPlain ? only.base : { type: "power", factors }, end };
  }

  #signedPrimary(place: number): Match<Factor> {
    const signs: ("+" | "-")[] = [];
    let at = place;
    for (; this.#is(at, "+") || this.#is(at, "-"); at++) {
      signs.push(this.#is(at, "+") ? "+" : "-");
      this.#descend(1);
    }
    const base = this.#primary(at);
    return base === undefined ? undefined : { value: { signs, base: base.value }, end: base.end };
  }

  #primary(place: number): Match<Expression> {
    const called = this.#atom(place);
    if (called === undefined) return undefined;
    const calls: Call[] = [];
    let { end } = called;
    while (this.#is(end, "(")) {
      const call = this.#call(end);
      if (call === undefined) break;
      calls.push(call.value);
      end = call.end;
    }
    // A name must follow a point. No names occur, and CPython detects the error by reading the next token.
    if (this.#is(end, ".")) this.#token(end + 1);
    if (calls.length === 0) return called;
    return { value: { type: "call", called: called.value, calls }, end };
  }

  #atom(place: number): Match<Expression> {
    const token = this.#token(place);
    if (token.type === "number") return { value: numberOf(token), end: place + 1 };
    if (this.#is(place, "...")) return { value: { type: "ellipsis" }, end: place + 1 };
    return this.#is(place, "(") ? this.#parenthesis(place) : undefined;
  }

  #parenthesis(place: number): Match<Expression> {
    if (this.#is(place + 1, ")")) return { value: { type: "tuple" }, end: place + 2 };
    this.#descend(rulesPerParenthesis);
    const match = this.#inner(place);
    this.#depth -= rulesPerParenthesis;
    return match;
  }

  #inner(place: number): Match<Expression> {
    const [star, doubleStar] = [this.#is(place + 1, "*"), this.#is(place + 1, "**")];
    if (!star && !doubleStar) {
      const inner = this.#expression(place + 1);
      const isClosed = inner !== undefined && this.#is(inner.end, ")");
      return isClosed ? { value: inner.value, end: inner.end + 1 } : undefined;
    }
    // A starred item is read in either pass, a doubly starred one only as a mistake.
    if (doubleStar && !this.#findsMistakes) return undefined;
    const starred = this.#findsMistakes ? this.#expression(place + 2) : this.#sum(place + 2);
    if (this.#findsMistakes && starred !== undefined && this.#is(starred.end, ")")) {
      this.fail(`cannot use ${star ? "" : "double "}starred expression here`);
    }
    return undefined;
  }

  #call(place: number): Match<Call> {
    if (this.#is(place + 1, ")")) return { value: { type: "empty" }, end: place + 2 };
    this.#descend(rulesPerParenthesis);
    const stars = ["*", "**"].find((operator) => this.#is(place + 1, operator));
    const argument = this.#expression(place + (stars === undefined ? 1 : 2));
    this.#depth -= rulesPerParenthesis;
    if (argument === undefined || !this.#is(argument.end, ")")) return undefined;
    const type = stars === undefined ? "plain" : stars === "*" ? "star" : "double-star";
    return { value: { type, argument: argument.value }, end: argument.end + 1 };
  }

  #descend(rules: number): void {
    this.#depth += rules;
    if (this.#depth >= maxRuleDepth) throw new PythonError("MemoryError", "");
  }
}

function numberOf(token: Token & { readonly type: "number" }): Expression {
  try {
    const value = readNumber(token);
    return typeof value === "bigint" ? { type: "int", value } : { type: "float", value };
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    throw new GrammarError(error.message);
  }
}
