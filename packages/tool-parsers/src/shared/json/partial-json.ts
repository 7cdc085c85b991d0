import {
  decodePythonJsonAt,
  parsePythonJson,
  PythonError,
  PythonJsonError,
  pythonStrip,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { skipPythonSpace } from "../text/skip-characters.ts";

/** An open bracket and its place. */
interface OpenBracket {
  readonly index: number;
  readonly bracket: "{" | "[";
}

/** The kept start of a text, and the text that completes it. */
type Completion = readonly [head: string, tail: string];

/** A failed assertion of the library, for texts that it cannot complete. */
export class CompletionAssertion extends PythonValueError {}

/**
 * Reads JSON that may be cut off anywhere, as SGLang does with the Python library
 * partial_json_parser. Open strings, lists and objects are closed, and incomplete members are
 * dropped. Text after the value is dropped too. With `isForgiving`, as in SGLang, this includes text
 * after brackets that do not match, and a value after white space. Default true.
 *
 * **Source:** promplate/partial-json-parser, `src/partial_json_parser/core/myelin.py` and
 * `complete.py`; sgl-project/sglang, `python/sglang/srt/function_call/utils.py`
 * (`_partial_json_loads`).
 *
 * @throws PythonError if that raises; `CompletionAssertion` if the library asserts.
 */
export function parsePartialJson(
  text: string,
  { isForgiving = true }: { readonly isForgiving?: boolean } = {},
): PyValue {
  let completed: string;
  try {
    completed = complete(text).join("");
  } catch (error) {
    if (!(error instanceof UnmatchedBracket)) throw error;
    if (isForgiving) return decodePrefix(text, true);
    throw new PythonError("IndexError", "pop from empty list");
  }
  try {
    return parsePythonJson(completed);
  } catch (error) {
    if (error instanceof PythonJsonError && error.problem === "Extra data")
      return decodePrefix(text, isForgiving);
    throw error;
  }
}

function decodePrefix(text: string, skipsSpace: boolean): PyValue {
  const start = skipsSpace ? (/^[ \t\n\r]*/.exec(text)?.[0].length ?? 0) : 0;
  return decodePythonJsonAt(text, start).value;
}

/** The error for a closing bracket without an opening one. The library then falls back to a prefix. */
class UnmatchedBracket extends Error {}

function assertThat(condition: boolean): asserts condition {
  if (!condition) throw new CompletionAssertion("the text cannot be completed");
}

/** The open brackets and strings at the end of a text. */
interface Outline {
  readonly stack: readonly OpenBracket[];
  readonly inString: boolean;
  readonly stringStart: number;
  readonly stringEnd: number;
  readonly lastMark: { readonly index: number; readonly mark: string };
}

function readOutline(text: string): Outline {
  const stack: OpenBracket[] = [];
  let inString = false;
  let stringStart = -1;
  let stringEnd = -1;
  let lastMark = { index: -1, mark: "" };
  for (const { 0: mark, index } of text.matchAll(/["[\]{}]/g)) {
    lastMark = { index, mark };
    if (mark === '"') {
      if (!inString) {
        inString = true;
        stringStart = index;
      } else if (!isEscaped(text, index)) {
        inString = false;
        stringEnd = index;
      }
    } else if (!inString && (mark === "{" || mark === "[")) {
      stack.push({ index, bracket: mark });
    } else if (!inString) {
      const open = stack.pop();
      if (open === undefined) throw new UnmatchedBracket();
      assertThat(open.bracket === (mark === "}" ? "{" : "["));
    }
  }
  return { stack, inString, stringStart, stringEnd, lastMark };
}

function isEscaped(text: string, index: number): boolean {
  let start = index;
  while (text[start - 1] === "\\") start -= 1;
  return (index - start) % 2 === 1;
}

function closeAll(stack: readonly OpenBracket[]): string {
  return stack
    .toReversed()
    .map(({ bracket }) => (bracket === "{" ? "}" : "]"))
    .join("");
}

function complete(text: string): Completion {
  if (!/^[^"[\]{}]*[[\]{}]/.test(text)) return fix(text, true);
  const outline = readOutline(text);
  const { stack, inString } = outline;
  const top = stack.at(-1);
  if (top === undefined) return [text, ""];
  assertThat(inString === outline.stringEnd < outline.stringStart);
  return inString ? completeString(text, outline, top) : completeContainer(text, outline, top);
}

function completeString(text: string, outline: Outline, top: OpenBracket): Completion {
  const { stack, stringStart, stringEnd } = outline;
  const fixString = (): Completion => {
    const [head, tail] = fix(text.slice(stringStart), false);
    return [text.slice(0, stringStart) + head, tail + closeAll(stack)];
  };
  if (top.bracket === "[") return fixString();
  const start = Math.max(stringEnd, top.index);
  const between = text.slice(start + 1, stringStart);
  if (between.includes(",")) {
    const comma = text.lastIndexOf(",", stringStart - 1);
    const [head, tail] = fix(`{${text.slice(comma + 1)}`, false);
    return [text.slice(0, comma) + head.slice(1), tail + closeAll(stack.slice(0, -1))];
  }
  if (between.includes(":")) return fixString();
  return [text.slice(0, stringStart), closeAll(stack)];
}

function completeContainer(text: string, outline: Outline, top: OpenBracket): Completion {
  const { stack, stringEnd, lastMark } = outline;
  const comma = lastIndexFrom(text, ",", Math.max(stringEnd, lastMark.index) + 1);
  if (comma !== -1) {
    if (isBlank(text.slice(comma + 1))) return [text.slice(0, comma), closeAll(stack)];
    assertThat(top.bracket === "[");
    return completeAfterComma(text, { comma, stack, bracket: "[", keepsOuter: false });
  }
  const { index, mark } = lastMark;
  if (mark === "]" || mark === "}") {
    assertThat(isBlank(text.slice(index + 1)));
    return [text, closeAll(stack)];
  }
  if (mark === "[" || mark === "{") return completeFrom(text, index, stack);
  if (top.bracket === "[") return [text, closeAll(stack)];
  return completeAfterString(text, outline, top);
}

/**
 * Completes a text that ends with a complete string in an object, apart from white space and
 * literals.
 */
function completeAfterString(text: string, outline: Outline, top: OpenBracket): Completion {
  const { stack, stringStart, stringEnd } = outline;
  const colon = lastIndexFrom(text, ":", stringEnd);
  const comma = lastIndexFrom(text.slice(0, stringStart), ",", top.index + 1);
  if (comma === -1) return completeFrom(text, top.index, stack);
  if (colon !== -1) {
    assertThat(colon > comma);
    return completeAfterComma(text, { comma, stack, bracket: "{", keepsOuter: false });
  }
  const keyColon = lastIndexFrom(text.slice(0, stringStart), ":", Math.max(top.index, comma) + 1);
  if (keyColon !== -1) return [text, closeAll(stack)];
  return completeAfterComma(text, { comma, stack, bracket: "{", keepsOuter: true });
}

function completeFrom(text: string, index: number, stack: readonly OpenBracket[]): Completion {
  const [head, tail] = fix(text.slice(index), false);
  return [text.slice(0, index) + head, tail + closeAll(stack.slice(0, -1))];
}

function completeAfterComma(
  text: string,
  place: {
    readonly comma: number;
    readonly stack: readonly OpenBracket[];
    readonly bracket: "{" | "[";
    /** True if the library closes the inner bracket twice, which results in invalid JSON. */
    readonly keepsOuter: boolean;
  },
): Completion {
  const { comma, stack, bracket } = place;
  const [head, tail] = fix(bracket + text.slice(comma + 1), false);
  const outer = closeAll(stack.slice(0, -1));
  const isEmpty = head.slice(1) + pythonStrip(tail.slice(0, -1)) === "";
  if (isEmpty) return [text.slice(0, comma) + head.slice(1), tail + outer];
  const closing = place.keepsOuter ? closeAll(stack) : outer;
  return [text.slice(0, comma + 1) + head.slice(1), tail + closing];
}

function lastIndexFrom(text: string, mark: string, from: number): number {
  const index = text.lastIndexOf(mark);
  return index >= from ? index : -1;
}

function isBlank(text: string): boolean {
  return pythonStrip(text) === "";
}

/** The part of a value that a text contains: its end, and the text that completes it. */
type Part =
  | { readonly type: "complete"; readonly end: number }
  | { readonly type: "cut"; readonly end: number; readonly tail: string }
  | { readonly type: "empty" };

function fix(text: string, isTopLevel: boolean): Completion {
  const stripped = pythonStrip(text);
  const part = new Completer(stripped).readValue(0, isTopLevel, 0);
  if (part.type === "empty") throw malformed();
  // The library measures the text without white space around it, and applies the length to the text
  // with it.
  return [text.slice(0, part.end), part.type === "cut" ? part.tail : ""];
}

function malformed(): PythonValueError {
  return new PythonValueError("malformed JSON");
}

const literals = ["null", "true", "false", "Infinity", "-Infinity", "NaN"] as const;

/** Maximum nesting that is read. It stands for Python's recursion limit. */
const MAX_DEPTH = 400;

class Completer {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  readValue(start: number, isTopLevel: boolean, depth: number): Part {
    if (depth > MAX_DEPTH) throw malformed();
    const text = this.#text;
    const first = text[start];
    if (first === undefined) throw malformed();
    if (first === '"') return this.#readString(start);
    if (/[0-9]/.test(first)) return this.#readNumber(start, isTopLevel);
    if (first === "[" || first === "{") return this.#readContainer(start, first, depth);
    if (first === "-" && text.length > start + 1 && text[start + 1] !== "I") {
      return this.#readNumber(start, isTopLevel);
    }
    if (first === "-" && text.length === start + 1) return { type: "empty" };
    const rest = text.slice(start, start + 10);
    for (const literal of literals) {
      if (rest.startsWith(literal)) return { type: "complete", end: start + literal.length };
      if (literal.startsWith(text.slice(start))) return { type: "cut", end: start, tail: literal };
    }
    throw malformed();
  }

  #readString(start: number): Part {
    const text = this.#text;
    let index = start + 1;
    for (;;) {
      const character = text[index];
      if (character === undefined || (character === "\\" && index + 1 === text.length)) break;
      if (character === "\\") index += 2;
      else if (character === '"') return { type: "complete", end: index + 1 };
      else index += 1;
    }
    return { type: "cut", end: this.#cutEscape(start, Math.min(index, text.length)), tail: '"' };
  }

  /** The end of a string without an incomplete escape. */
  #cutEscape(start: number, end: number): number {
    for (const [marker, reach] of [
      ["\\u", 5],
      ["\\U", 9],
      ["\\x", 3],
    ] as const) {
      const from = Math.max(start, end - reach);
      const place = this.#text.slice(from, end).lastIndexOf(marker);
      if (place !== -1 && !isEscaped(this.#text.slice(start), from + place - start))
        return from + place;
    }
    return end;
  }

  #readNumber(start: number, isTopLevel: boolean): Part {
    const match = /[0-9.\-+eE]*/y;
    match.lastIndex = start + 1;
    match.test(this.#text);
    let end = match.lastIndex;
    const fullEnd = end;
    while (end > start && /[.\-+eE]/.test(this.#text[end - 1] ?? "")) end -= 1;
    if (end !== fullEnd || (fullEnd === this.#text.length && !isTopLevel)) {
      return { type: "cut", end, tail: "" };
    }
    return { type: "complete", end };
  }

  #readContainer(start: number, open: "[" | "{", depth: number): Part {
    const close = open === "[" ? "]" : "}";
    let lastEnd = start + 1;
    let index = start + 1;
    for (;;) {
      index = skipPythonSpace(this.#text, index);
      if (this.#text[index] === close) return { type: "complete", end: index + 1 };
      const cut: Part = { type: "cut", end: lastEnd, tail: close };
      if (open === "{") {
        const colon = this.#readKey(index);
        if (colon === undefined) return cut;
        index = colon;
      }
      if (index >= this.#text.length) return cut;
      const item = this.readValue(index, false, depth + 1);
      if (item.type === "empty") return cut;
      if (item.type === "cut") return { type: "cut", end: item.end, tail: item.tail + close };
      lastEnd = item.end;
      index = skipPythonSpace(this.#text, item.end);
      if (index >= this.#text.length) return { type: "cut", end: lastEnd, tail: close };
      if (this.#text[index] === close) return { type: "complete", end: index + 1 };
      if (this.#text[index] !== ",") throw malformed();
      index += 1;
    }
  }

  /**
   * Reads a key and its colon. Returns the start of the value, or `undefined` if the text ends
   * first.
   */
  #readKey(start: number): number | undefined {
    if (start >= this.#text.length) return undefined;
    if (this.#text[start] !== '"') throw malformed();
    const key = this.#readString(start);
    if (key.type !== "complete") return undefined;
    const colon = skipPythonSpace(this.#text, key.end);
    if (colon >= this.#text.length) return undefined;
    if (this.#text[colon] !== ":") throw malformed();
    return skipPythonSpace(this.#text, colon + 1);
  }
}
