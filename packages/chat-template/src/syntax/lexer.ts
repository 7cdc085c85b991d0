import { pythonRstrip, pythonSpaces } from "../../../python-values/src/index.ts";
import { unescapePythonString } from "./string-literal.ts";
import type { JinjaToken } from "./token.ts";
import { templateSyntaxError } from "./token.ts";

const space = `[${pythonSpaces}]`;
const opening = /\{[{%#]/g;
const rawBegin = new RegExp(`\\{%([-+]?)${space}*raw${space}*(?:-%\\}${space}*|%\\})`, "y");
const rawEnd = new RegExp(
  `\\{%([-+]?)${space}*endraw${space}*(?:\\+%\\}|-%\\}${space}*|%\\}\\n?)`,
  "g",
);
const commentEnd = new RegExp(`\\+#\\}|-#\\}${space}*|#\\}\\n?`, "g");
const blockEnd = new RegExp(`\\+%\\}|-%\\}${space}*|%\\}\\n?`, "y");
const variableEnd = new RegExp(`-\\}\\}${space}*|\\}\\}`, "y");
const onlySpace = new RegExp(`^${space}+$`);

const spaceRun = new RegExp(`${space}+`, "y");
const floatLiteral =
  /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy;
const integerLiteral = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy;
const nameLiteral = /[\p{XID_Continue}]+/uy;
const stringLiteral = /'[^'\\]*(?:\\[^][^'\\]*)*'|"[^"\\]*(?:\\[^][^"\\]*)*"/y;
const operator = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y;

const closers: ReadonlyMap<string, string> = new Map([
  ["{", "}"],
  ["(", ")"],
  ["[", "]"],
]);

/**
 * Splits a template into tokens, with the transformers library's white-space rules: removes the first line break
 * after a block (`trim_blocks`), white space between a line's start and a block (`lstrip_blocks`), and one line
 * break at the end.
 *
 * **Source:** the Jinja documentation, "Template Designer Documentation", and the behaviour of Jinja 3.1.6.
 *
 * @throws UsageError naming the line.
 */
export function tokenizeTemplate(source: string): readonly JinjaToken[] {
  const lexer = new JinjaLexer(source.replace(/\r\n?/g, "\n").replace(/\n$/, ""));
  lexer.run();
  return lexer.tokens;
}

type Mode = "block" | "variable";

class JinjaLexer {
  readonly tokens: JinjaToken[] = [];
  readonly #source: string;
  #index = 0;
  #line = 1;
  /** True if the text before ended a line, so that a block may follow at a line's start. */
  #lineStarts = true;

  constructor(source: string) {
    this.#source = source;
  }

  run(): void {
    while (this.#index < this.#source.length) {
      opening.lastIndex = this.#index;
      const found = opening.exec(this.#source);
      if (found === null) {
        const rest = this.#source.slice(this.#index);
        this.#addData(rest, rest);
      } else {
        this.#readTag(found.index, found[0]);
      }
    }
    this.tokens.push({ type: "end", value: "", line: this.#line });
  }

  #readTag(start: number, delimiter: string): void {
    const text = this.#source.slice(this.#index, start);
    const raw = delimiter === "{%" ? matchAt(rawBegin, this.#source, start) : null;
    const sign = raw ? (raw[1] ?? "") : signAt(this.#source, start + 2);
    this.#addData(text, this.#stripBefore(text, sign, delimiter === "{{"));
    if (raw !== null) {
      this.#advance(raw[0]);
      this.#readRaw();
    } else {
      this.#advance(delimiter + sign);
      if (delimiter === "{#") this.#readComment();
      else this.#readExpression(delimiter === "{%" ? "block" : "variable");
    }
  }

  /** Adds the text up to a tag; `kept` is the part that the tag leaves. */
  #addData(text: string, kept: string): void {
    if (kept !== "") this.tokens.push({ type: "data", value: kept, line: this.#line });
    this.#index += text.length;
    this.#line += lineBreaks(text);
  }

  #advance(text: string): void {
    this.#index += text.length;
    this.#line += lineBreaks(text);
    this.#lineStarts = text.endsWith("\n");
  }

  /** The text before a tag without the white space that the tag removes. */
  #stripBefore(text: string, sign: string, isVariable: boolean): string {
    if (sign === "-") return pythonRstrip(text);
    if (sign === "+" || isVariable) return text;
    const lineStart = text.lastIndexOf("\n") + 1;
    const startsLine = lineStart > 0 || this.#lineStarts;
    return startsLine && onlySpace.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text;
  }

  #readComment(): void {
    commentEnd.lastIndex = this.#index;
    const end = commentEnd.exec(this.#source);
    if (end === null) throw templateSyntaxError(this.#line, "Missing end of comment tag");
    this.#advance(this.#source.slice(this.#index, end.index + end[0].length));
  }

  #readRaw(): void {
    rawEnd.lastIndex = this.#index;
    const end = rawEnd.exec(this.#source);
    if (end === null) throw templateSyntaxError(this.#line, "Missing end of raw directive");
    const text = this.#source.slice(this.#index, end.index);
    this.#addData(text, this.#stripBefore(text, end[1] ?? "", false));
    this.#advance(end[0]);
  }

  #readExpression(mode: Mode): void {
    this.tokens.push({ type: `${mode}-begin`, value: "", line: this.#line });
    const pattern = mode === "block" ? blockEnd : variableEnd;
    const open: string[] = [];
    while (this.#index < this.#source.length) {
      const end = open.length === 0 ? matchAt(pattern, this.#source, this.#index) : null;
      if (end !== null) {
        this.tokens.push({ type: `${mode}-end`, value: "", line: this.#line });
        this.#advance(end[0]);
        return;
      }
      this.#readToken(open);
    }
    throw templateSyntaxError(this.#line, `unexpected end of template inside a ${mode} tag`);
  }

  #readToken(open: string[]): void {
    const line = this.#line;
    const take = (pattern: RegExp): string | undefined => {
      const match = matchAt(pattern, this.#source, this.#index)?.[0];
      if (match !== undefined) this.#advance(match);
      return match;
    };
    if (take(spaceRun) !== undefined) return;
    let text = take(floatLiteral);
    if (text !== undefined) {
      this.tokens.push({ type: "float", value: Number(text.replaceAll("_", "")), line });
    } else if ((text = take(integerLiteral)) !== undefined) {
      this.tokens.push({ type: "integer", value: BigInt(text.replaceAll("_", "")), line });
    } else if ((text = take(nameLiteral)) !== undefined) {
      assertIdentifier(text, line);
      this.tokens.push({ type: "name", value: text, line });
    } else if ((text = take(stringLiteral)) !== undefined) {
      this.tokens.push({ type: "string", value: unescapePythonString(text, line), line });
    } else if ((text = take(operator)) !== undefined) {
      balance(open, text, line);
      this.tokens.push({ type: "operator", value: text, line });
    } else {
      const character = String.fromCodePoint(this.#source.codePointAt(this.#index) ?? 0);
      throw templateSyntaxError(line, `unexpected character ${JSON.stringify(character)}`);
    }
  }
}

function matchAt(pattern: RegExp, text: string, index: number): RegExpExecArray | null {
  pattern.lastIndex = index;
  return pattern.exec(text);
}

function signAt(source: string, index: number): string {
  const sign = source[index];
  return sign === "-" || sign === "+" ? sign : "";
}

function lineBreaks(text: string): number {
  return text.split("\n").length - 1;
}

function assertIdentifier(name: string, line: number): void {
  if (!/^[\p{XID_Start}_]/u.test(name)) {
    throw templateSyntaxError(line, `${name} is not an identifier`);
  }
}

/** Tracks brackets: `}}` inside of `{…}` does not end a tag. */
function balance(open: string[], text: string, line: number): void {
  const closer = closers.get(text);
  if (closer !== undefined) open.push(closer);
  if (text !== "}" && text !== ")" && text !== "]") return;
  const expected = open.pop();
  if (expected === undefined) throw templateSyntaxError(line, `unexpected '${text}'`);
  if (expected !== text) {
    throw templateSyntaxError(line, `unexpected '${text}', expected '${expected}'`);
  }
}
