import {
  parseIntDigits,
  PythonError,
  PythonValueError,
} from "../../../../python-values/src/index.ts";
import { syntaxError } from "./syntax-error.ts";
import { readStringLiteral } from "./string-literal.ts";

/** A token of a Python expression. */
export type Token =
  | { readonly type: "name"; readonly text: string }
  | { readonly type: "operator"; readonly text: string }
  /** An int or a float as it is written; `readNumber()` gives its value. */
  | { readonly type: "number"; readonly text: string }
  | { readonly type: "string"; readonly value: string }
  /** Bytes, an imaginary number or a formatted string, which JSON cannot represent. */
  | {
      readonly type: "foreign";
      readonly kind: "bytes" | "imaginary" | "formatted";
      /** The text of a formatted string without placeholders. */
      readonly text?: string;
    }
  | { readonly type: "newline" }
  | { readonly type: "end" };

/** A Python keyword, which cannot be an identifier. */
export const keywords: ReadonlySet<string> = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return try while " +
    "with yield"
  ).split(" "),
);

/** Maximum nesting of brackets that CPython allows. */
const MAX_BRACKETS = 200;

const spacePattern = /(?:[ \t\f]|\\\n)*(?:#[^\n]*)?/y;
const indentPattern = /[ \t\f]+[^ \t\f\n#]/y;
const namePattern = /[\p{XID_Start}_][\p{XID_Continue}]*/uy;
const operatorPattern = /\*\*|\/\/|<<|>>|<=|>=|==|!=|->|:=|\.\.\.|[-+*/%@&|^~<>()[\]{},:.;=]/y;
const digits = String.raw`\d(?:_?\d)*`;
const floatPattern = new RegExp(
  `(?:(?:${digits})?\\.${digits}|${digits}\\.)(?:[eE][+-]?${digits})?|${digits}[eE][+-]?${digits}`,
  "y",
);
const imaginaryPattern = new RegExp(`${digits}[jJ]`, "y");
const numberRestPattern = /\d+|[\p{XID_Start}_][\p{XID_Continue}]*/uy;
const leadingZeros =
  "leading zeros in decimal integer literals are not permitted; " +
  "use an 0o prefix for octal integers";
const intPattern =
  /0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|[1-9](?:_?\d)*|0(?:_?0)*/y;

/**
 * Splits Python source into tokens, one at a time, as CPython 3.11 does. Line breaks count outside
 * brackets only.
 */
export class TokenReader {
  readonly #text: string;
  #index = 0;
  #start = 0;
  #brackets: string[] = [];

  /** @throws PythonError for text that CPython refuses to tokenize. */
  constructor(source: string) {
    if (source.includes("\0") || /\p{Surrogate}/u.test(source)) {
      throw new PythonError("ValueError", "source code cannot be encoded");
    }
    this.#text = source.replace(/\r\n?/g, "\n");
  }

  /** The number of brackets that are open after the last token. */
  get openBrackets(): number {
    return this.#brackets.length;
  }

  /** The start of the last token; `\r\n` counts as one code unit. */
  get start(): number {
    return this.#start;
  }

  /** True if no token follows. */
  isAtEnd(): boolean {
    this.#skipSpace();
    return this.#index >= this.#text.length;
  }

  /**
   * Reads the next token.
   *
   * @throws PythonError `SyntaxError` if the text has no valid token here.
   */
  next(): Token {
    this.#skipSpace();
    this.#start = this.#index;
    const text = this.#text;
    const first = text[this.#index];
    if (first === undefined) {
      if (text.endsWith("\\\n")) throw syntaxError("the text ends after a backslash");
      if (this.#brackets.length > 0)
        throw syntaxError(`'${this.#brackets.at(-1)}' was never closed`);
      return { type: "end" };
    }
    if (first === "\n") {
      this.#index += 1;
      this.#refuseIndent();
      return { type: "newline" };
    }
    return this.#string() ?? this.#number() ?? this.#name() ?? this.#operator();
  }

  /** Refuses an indented line, which may only follow a statement that opens a block. */
  #refuseIndent(): void {
    indentPattern.lastIndex = this.#index;
    if (indentPattern.test(this.#text)) throw syntaxError("unexpected indent");
  }

  #skipSpace(): void {
    for (;;) {
      spacePattern.lastIndex = this.#index;
      spacePattern.test(this.#text);
      this.#index = spacePattern.lastIndex;
      if (this.#brackets.length === 0 || this.#text[this.#index] !== "\n") return;
      this.#index += 1;
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#index;
    const match = pattern.exec(this.#text)?.[0];
    if (match !== undefined) this.#index += match.length;
    return match;
  }

  #string(): Token | undefined {
    const literal = readStringLiteral(this.#text, this.#index);
    if (literal === undefined) return undefined;
    this.#index = literal.end;
    if (literal.kind === "text") return { type: "string", value: literal.value };
    const { kind } = literal;
    return kind === "formatted" && literal.text !== undefined
      ? { type: "foreign", kind, text: literal.text }
      : { type: "foreign", kind };
  }

  #number(): Token | undefined {
    const first = this.#text[this.#index] ?? "";
    if (!/[0-9.]/.test(first)) return undefined;
    const start = this.#index;
    const token = this.#imaginary() ?? this.#float() ?? this.#int();
    if (token === undefined) return undefined;
    // A number must not be followed directly by a digit or letter: `007`, `1__0` and `1a` are not
    // Python.
    const rest = this.#match(numberRestPattern);
    if (rest === undefined) return token;
    const text = this.#text.slice(start, this.#index);
    if (/^0+[1-9]\d*$/.test(text)) throw syntaxError(leadingZeros);
    throw syntaxError(`invalid number ${text}`);
  }

  #imaginary(): Token | undefined {
    if (this.#match(imaginaryPattern) === undefined) return undefined;
    return { type: "foreign", kind: "imaginary" };
  }

  #float(): Token | undefined {
    const match = this.#match(floatPattern);
    if (match === undefined) return undefined;
    const next = this.#text[this.#index];
    if (next === "j" || next === "J") {
      this.#index += 1;
      return { type: "foreign", kind: "imaginary" };
    }
    return { type: "number", text: match };
  }

  #int(): Token | undefined {
    const match = this.#match(intPattern);
    return match === undefined ? undefined : { type: "number", text: match };
  }

  #name(): Token | undefined {
    const name = this.#match(namePattern);
    return name === undefined ? undefined : { type: "name", text: name.normalize("NFKC") };
  }

  #operator(): Token {
    const operator = this.#match(operatorPattern);
    if (operator === undefined) throw syntaxError("invalid character");
    if ("([{".includes(operator)) {
      this.#brackets.push(operator);
      if (this.#brackets.length > MAX_BRACKETS) {
        throw syntaxError("too many nested parentheses");
      }
    } else if (")]}".includes(operator)) {
      const open = this.#brackets.pop();
      if (open === undefined) throw syntaxError(`unmatched '${operator}'`);
      if ("([{".indexOf(open) !== ")]}".indexOf(operator)) {
        throw syntaxError(`closing parenthesis '${operator}' does not match '${open}'`);
      }
    }
    return { type: "operator", text: operator };
  }
}

/**
 * The value of a number token: an `int`, or a `float` if it has a point or an exponent.
 *
 * @throws PythonError `SyntaxError` for an int of more than 4,300 digits.
 */
export function readNumber({ text }: { readonly text: string }): bigint | number {
  const plain = text.replaceAll("_", "");
  if (/^0[a-z]/i.test(plain)) return BigInt(plain.toLowerCase());
  if (/[.eE]/.test(plain)) return Number(plain);
  try {
    return parseIntDigits(plain);
  } catch (error) {
    if (!(error instanceof PythonValueError)) throw error;
    throw syntaxError(
      `${error.message} - Consider hexadecimal for huge integer literals to avoid ` +
        "decimal conversion limits.",
    );
  }
}
