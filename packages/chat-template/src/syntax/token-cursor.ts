import type { JinjaToken } from "./token.ts";
import { templateSyntaxError } from "./token.ts";

/** Deepest nesting of brackets, conditions and blocks. Published templates stay below 20. */
const maxNesting = 100;

/** A position in a template's tokens, for the parser. */
export class JinjaTokenCursor {
  readonly #tokens: readonly JinjaToken[];
  #index = 0;
  #depth = 0;

  constructor(tokens: readonly JinjaToken[]) {
    this.#tokens = tokens;
  }

  /** Parses a part that may nest. @throws UsageError if the nesting is too deep. */
  nested<Part>(parse: () => Part): Part {
    if (this.#depth >= maxNesting) {
      throw this.problem(`nested too deeply, expected at most ${maxNesting} levels`);
    }
    this.#depth += 1;
    const part = parse();
    this.#depth -= 1;
    return part;
  }

  get current(): JinjaToken {
    return this.#tokens[this.#index] as JinjaToken;
  }

  get line(): number {
    return this.current.line;
  }

  /** True if the token after the current one is that operator or name. */
  nextIs(type: "operator" | "name", value: string): boolean {
    const next = this.#tokens[this.#index + 1];
    return next?.type === type && next.value === value;
  }

  /** Returns the current token and advances to the next. */
  advance(): JinjaToken {
    const token = this.current;
    if (token.type !== "end") this.#index += 1;
    return token;
  }

  isOperator(value: string): boolean {
    return this.current.type === "operator" && this.current.value === value;
  }

  isName(value?: string): boolean {
    return this.current.type === "name" && (value === undefined || this.current.value === value);
  }

  /** Skips the operator if it is the current token; returns true if it was. */
  skipOperator(value: string): boolean {
    const found = this.isOperator(value);
    if (found) this.advance();
    return found;
  }

  /** Skips the name if it is the current token; returns true if it was. */
  skipName(value: string): boolean {
    const found = this.isName(value);
    if (found) this.advance();
    return found;
  }

  expectOperator(value: string): void {
    if (!this.skipOperator(value)) throw this.unexpected(`'${value}'`);
  }

  expectName(): string {
    const token = this.current;
    if (token.type !== "name") throw this.unexpected("a name");
    this.advance();
    return token.value;
  }

  expectType(type: "variable-end" | "block-end", what: string): void {
    if (this.current.type !== type) throw this.unexpected(what);
    this.advance();
  }

  /** The error for an unexpected current token. */
  unexpected(expected: string): Error {
    return this.problem(`unexpected ${describeToken(this.current)}, expected ${expected}`);
  }

  problem(problem: string, line = this.line): Error {
    return templateSyntaxError(line, problem);
  }
}

function describeToken(token: JinjaToken): string {
  switch (token.type) {
    case "name":
    case "operator":
    case "integer":
    case "float":
      return `'${token.value}'`;
    case "string":
      return "a string";
    case "data":
      return "text";
    case "end":
      return "end of the template";
    default:
      return `the ${token.type.replace("-", " ")}`;
  }
}
