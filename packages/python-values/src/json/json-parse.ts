import { parseIntDigits } from "../numbers/int-text.ts";
import { PythonError, PythonValueError } from "../python-error.ts";
import type { PyValue } from "../value.ts";

/** The deepest nesting of containers: CPython's default recursion limit leaves this much to a plain script. */
export const MAX_JSON_DEPTH = 995;

/** Python's `json.JSONDecodeError`; the message is its `str()`. */
export class PythonJsonError extends PythonValueError {
  /** The problem without its place, such as `Expecting value`. */
  readonly problem: string;
  /** The position in UTF-16 code units. */
  readonly index: number;

  constructor(problem: string, text: string, index: number) {
    super(`${problem}: ${describePlace(text, index)}`, "JSONDecodeError");
    this.name = "PythonJsonError";
    this.problem = problem;
    this.index = index;
  }
}

/** Options for reading JSON text. */
export interface PythonJsonOptions {
  /** True to refuse control characters in strings. Default true. */
  readonly strict?: boolean;
}

/**
 * Reads a JSON document like Python's `json.loads()`: `NaN`, `Infinity` and `-Infinity` are numbers, integers are
 * unbounded and distinct from floats, the last of several equal keys wins in the first one's place, and lone
 * surrogates are allowed.
 *
 * **Source:** CPython 3.11, `Modules/_json.c` and `Lib/json/decoder.py`.
 *
 * @throws PythonJsonError if Python raises `JSONDecodeError`.
 * @throws PythonValueError for an integer of more than 4,300 digits.
 * @throws PythonError `RecursionError` if containers nest deeper than `MAX_JSON_DEPTH`.
 */
export function parsePythonJson(text: string, { strict = true }: PythonJsonOptions = {}): PyValue {
  if (text.startsWith("\uFEFF")) {
    throw new PythonJsonError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0);
  }
  const scanner = new Scanner(text, strict);
  scanner.skipSpace();
  const value = scanner.readValue(0);
  scanner.skipSpace();
  if (scanner.index !== text.length) throw new PythonJsonError("Extra data", text, scanner.index);
  return value;
}

/**
 * Reads the JSON value that starts exactly at `index`, like `JSONDecoder().raw_decode()`, and returns its end. Both
 * positions are in UTF-16 code units.
 *
 * @throws like `parsePythonJson()`.
 */
export function decodePythonJsonAt(text: string, index: number): { value: PyValue; end: number } {
  const scanner = new Scanner(text, true);
  scanner.index = index;
  const value = scanner.readValue(0);
  return { value, end: scanner.index };
}

const numberPattern = /-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)/y;
const hexPattern = /[0-9a-fA-F]{4}/y;

const constants: readonly (readonly [string, PyValue])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
];

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

class Scanner {
  index = 0;
  readonly #text: string;
  readonly #strict: boolean;

  constructor(text: string, strict: boolean) {
    this.#text = text;
    this.#strict = strict;
  }

  skipSpace(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.index);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.index += 1;
    }
  }

  readValue(depth: number): PyValue {
    const first = this.#text[this.index];
    if (first === '"') return this.#readString();
    if (first === "{") return this.#readObject(depth + 1);
    if (first === "[") return this.#readArray(depth + 1);
    if (first !== undefined && first >= "0" && first <= "9") return this.#readNumber();
    for (const [literal, value] of constants) {
      if (first === literal[0] && this.#text.startsWith(literal, this.index)) {
        this.index += literal.length;
        return value;
      }
    }
    return this.#readNumber();
  }

  #readNumber(): PyValue {
    numberPattern.lastIndex = this.index;
    const match = numberPattern.exec(this.#text);
    if (match === null) throw this.#problem("Expecting value", this.index);
    this.index = numberPattern.lastIndex;
    return match[1] === "" ? parseIntDigits(match[0]) : Number(match[0]);
  }

  #readArray(depth: number): PyValue {
    this.#checkDepth(depth, "array");
    const items: PyValue[] = [];
    this.index += 1;
    this.skipSpace();
    if (this.#text[this.index] === "]") {
      this.index += 1;
      return items;
    }
    for (;;) {
      items.push(this.readValue(depth));
      if (this.#endsAfterItem("]")) return items;
    }
  }

  #readObject(depth: number): PyValue {
    this.#checkDepth(depth, "object");
    const members = new Map<string, PyValue>();
    this.index += 1;
    this.skipSpace();
    if (this.#text[this.index] === "}") {
      this.index += 1;
      return members;
    }
    for (;;) {
      if (this.#text[this.index] !== '"') {
        throw this.#problem("Expecting property name enclosed in double quotes", this.index);
      }
      const key = this.#readString();
      this.skipSpace();
      if (this.#text[this.index] !== ":") {
        throw this.#problem("Expecting ':' delimiter", this.index);
      }
      this.index += 1;
      this.skipSpace();
      members.set(key, this.readValue(depth));
      if (this.#endsAfterItem("}")) return members;
    }
  }

  /** Reads the closing bracket after an item (true), or a comma and white space (false). */
  #endsAfterItem(close: "]" | "}"): boolean {
    this.skipSpace();
    const next = this.#text[this.index];
    if (next !== close && next !== ",") throw this.#problem("Expecting ',' delimiter", this.index);
    this.index += 1;
    if (next === close) return true;
    this.skipSpace();
    return false;
  }

  #readString(): string {
    const begin = this.index;
    this.index += 1;
    let value = this.#readPlainText();
    for (;;) {
      const unit = this.#text[this.index];
      if (unit === undefined) throw this.#problem("Unterminated string starting at", begin);
      if (unit === '"') {
        this.index += 1;
        return value;
      }
      value += this.#readEscape(begin) + this.#readPlainText();
    }
  }

  /** Reads up to the next quote or escape. */
  #readPlainText(): string {
    const text = this.#text;
    const start = this.index;
    let end = start;
    for (; end < text.length; end++) {
      const unit = text.charCodeAt(end);
      if (unit === 0x22 || unit === 0x5c) break;
      if (unit < 0x20 && this.#strict) throw this.#problem("Invalid control character at", end);
    }
    this.index = end;
    return text.slice(start, end);
  }

  #readEscape(begin: number): string {
    const kind = this.#text[this.index + 1];
    if (kind === undefined) throw this.#problem("Unterminated string starting at", begin);
    if (kind === "u") return this.#readUnicodeEscape();
    const plain = Object.hasOwn(escapes, kind) ? escapes[kind] : undefined;
    if (plain === undefined) throw this.#problem("Invalid \\escape", this.index);
    this.index += 2;
    return plain;
  }

  /** Reads a `\u` escape. A surrogate pair arrives as two escapes and joins by itself. */
  #readUnicodeEscape(): string {
    const digits = this.index + 2;
    hexPattern.lastIndex = digits;
    // CPython checks for a character after the four digits before it checks the digits.
    if (digits + 4 >= this.#text.length || !hexPattern.test(this.#text)) {
      throw this.#problem("Invalid \\uXXXX escape", digits - 1);
    }
    this.index = digits + 4;
    return String.fromCharCode(Number.parseInt(this.#text.slice(digits, digits + 4), 16));
  }

  #checkDepth(depth: number, what: "array" | "object"): void {
    if (depth > MAX_JSON_DEPTH) {
      throw new PythonError(
        "RecursionError",
        `maximum recursion depth exceeded while decoding a JSON ${what} from a unicode string`,
      );
    }
  }

  #problem(problem: string, index: number): PythonJsonError {
    return new PythonJsonError(problem, this.#text, index);
  }
}

/** Line, column and offset as Python counts them: in code points. */
function describePlace(text: string, index: number): string {
  const before = text.slice(0, index);
  const lineStart = before.lastIndexOf("\n") + 1;
  const line = before.split("\n").length;
  const column = codePointCount(before.slice(lineStart)) + 1;
  return `line ${line} column ${column} (char ${codePointCount(before)})`;
}

function codePointCount(text: string): number {
  const pairs = text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g);
  return text.length - (pairs?.length ?? 0);
}
