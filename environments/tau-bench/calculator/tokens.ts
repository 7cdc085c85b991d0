import { PythonError } from "../../../src/python/python-error.ts";

/** A token of an arithmetic expression. */
export interface Token {
  readonly type: "int" | "float" | "operator" | "end";
  /** The token's text; empty at the end. */
  readonly text: string;
  /** How many parentheses are open after the token. */
  readonly level: number;
}

/** CPython's limit on nested parentheses. */
const maxParentheses = 200;

const numberPattern = /(?:[0-9]+\.?[0-9]*|\.[0-9]+)/y;
const operatorPattern = /\.\.\.|\*\*|\/\/|[-+*/().]/y;

/**
 * Cuts an expression of digits, `+ - * / ( ) .` and spaces into CPython's tokens, one at a time: what
 * is wrong with a token shows when the parser asks for it.
 *
 * **Source:** CPython 3.11, `Parser/tokenizer.c`.
 */
export class Tokenizer {
  readonly #text: string;
  #index = 0;
  #level = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * The next token.
   *
   * @throws PythonError `SyntaxError`, also where the text ends within parentheses.
   */
  next(): Token {
    if (this.#isAtEnd()) {
      if (this.#level > 0) throw syntaxError("'(' was never closed");
      return { type: "end", text: "", level: 0 };
    }
    return this.#number() ?? this.#operator();
  }

  /**
   * Reads on to the end, for a token that is wrong by itself. Parentheses that stay open are not.
   *
   * @throws PythonError `SyntaxError`.
   */
  checkRest(): void {
    while (!this.#isAtEnd()) this.next();
  }

  #isAtEnd(): boolean {
    while (this.#text[this.#index] === " ") this.#index += 1;
    return this.#index >= this.#text.length;
  }

  #number(): Token | undefined {
    const text = this.#match(numberPattern);
    if (text === undefined) return undefined;
    if (text.includes(".")) return { type: "float", text, level: this.#level };
    if (/^0+[1-9]/.test(text)) {
      throw syntaxError(
        "leading zeros in decimal integer literals are not permitted; " +
          "use an 0o prefix for octal integers",
      );
    }
    return { type: "int", text, level: this.#level };
  }

  #operator(): Token {
    const text = this.#match(operatorPattern) ?? "";
    if (text === "(") {
      if (this.#level >= maxParentheses) throw syntaxError("too many nested parentheses");
      this.#level += 1;
    } else if (text === ")") {
      if (this.#level === 0) throw syntaxError("unmatched ')'");
      this.#level -= 1;
    }
    return { type: "operator", text, level: this.#level };
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#index;
    const text = pattern.exec(this.#text)?.[0];
    if (text !== undefined) this.#index += text.length;
    return text;
  }
}

/** A `SyntaxError` of `eval()`, as it prints. */
export function syntaxError(problem: string, line: 0 | 1 = 1): PythonError {
  return new PythonError("SyntaxError", `${problem} (<string>, line ${line})`);
}
