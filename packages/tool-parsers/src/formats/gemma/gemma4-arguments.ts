import {
  type PyDict,
  PythonError,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { skipCharacters } from "../../shared/text/skip-characters.ts";

const quote = '<|"|>';

/** Maximum nesting that is read. It stands for Python's recursion limit. */
const MAX_DEPTH = 512;

/**
 * Maximum number of times that nested values may be read again, in multiples of the text's length. The limit keeps the
 * time linear.
 */
const MAX_READS = 64;

/** The engine whose parser is reproduced. vLLM leaves values as text, and drops the unfinished end of a nested value. */
type GemmaDialect = "sglang" | "vllm";

/**
 * Reads the arguments of a Gemma 4 call: keys, colons and values. Strings stand between `<|"|>`. In
 * SGLang any other value is a number, a boolean or text; in vLLM it is text until the schema types it.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/gemma4_detector.py`, and
 * vllm-project/vllm, `vllm/parser/gemma4.py`.
 *
 * @throws PythonError `RecursionError` for values that nest too deep.
 */
export function parseGemmaArguments(text: string, dialect: GemmaDialect): PyDict {
  const reader = new GemmaReader(dialect, MAX_READS * text.length + 10_000);
  return reader.readObject({ text, isPartial: false, depth: 0 });
}

/**
 * Finds the closing brace of an object whose opening brace precedes the text; `undefined` if it is
 * missing. Braces in strings do not count.
 */
export function findGemmaBraceEnd(text: string): number | undefined {
  const end = findGemmaEnd(text, 0, { bracket: "{", skipsStrings: true });
  return end.closed ? end.index - 1 : undefined;
}

/**
 * Finds the place after the bracket that closes an opening bracket before `start`, or the end of
 * the text.
 */
function findGemmaEnd(
  text: string,
  start: number,
  { bracket, skipsStrings }: { readonly bracket: "{" | "["; readonly skipsStrings: boolean },
): { index: number; closed: boolean } {
  const closing = bracket === "{" ? "}" : "]";
  let depth = 1;
  let index = start;
  while (index < text.length && depth > 0) {
    if (skipsStrings && text.startsWith(quote, index)) {
      const end = text.indexOf(quote, index + quote.length);
      if (end === -1) return { index: text.length, closed: false };
      index = end + quote.length;
      continue;
    }
    if (text[index] === bracket) depth += 1;
    else if (text[index] === closing) depth -= 1;
    index += 1;
  }
  return { index, closed: depth === 0 };
}

/** A part of the text that contains members or items. */
interface Piece {
  readonly text: string;
  /** True if the closing bracket of the part is missing. Only vLLM takes this into account. */
  readonly isPartial: boolean;
  readonly depth: number;
}

/** A value, and its end in the text. */
interface Item {
  readonly value: PyValue;
  readonly end: number;
  /** True for a string without its closing quotation mark. */
  readonly isUnterminated?: boolean;
}

class GemmaReader {
  readonly #isVllm: boolean;
  #budget: number;

  constructor(dialect: GemmaDialect, budget: number) {
    this.#isVllm = dialect === "vllm";
    this.#budget = budget;
  }

  readObject(piece: Piece): PyDict {
    this.#spend(piece);
    const { text, isPartial } = piece;
    const members = new Map<string, PyValue>();
    let index = 0;
    for (;;) {
      index = skipCharacters(text, index, " ,\n\t");
      const colon = index < text.length ? text.indexOf(":", index) : -1;
      if (colon === -1) return members;
      const written = pythonStrip(text.slice(index, colon));
      const key = this.#isVllm ? unquote(written) : written;
      index = skipCharacters(text, colon + 1, " \n\t");
      if (index >= text.length) {
        if (!isPartial) members.set(key, "");
        return members;
      }
      const item = this.#readItem(piece, index, { stops: ",}]", skipsStrings: true });
      if (item === undefined) return members;
      const isCut = isPartial && item.isUnterminated === true;
      members.set(key, isCut ? dropPartialQuote(item.value as string) : item.value);
      index = item.end;
    }
  }

  #readArray(piece: Piece): PyValue {
    this.#spend(piece);
    const items: PyValue[] = [];
    let index = 0;
    for (;;) {
      index = skipCharacters(piece.text, index, " ,\n\t");
      if (index >= piece.text.length) return items;
      // SGLang matches lists inside lists without regard to strings.
      const place = { stops: ",]", skipsStrings: this.#isVllm };
      const item = this.#readItem(piece, index, place);
      if (item === undefined) return items;
      items.push(item.value);
      // A stray closing bracket would be read forever.
      if (item.end === index) throw new PythonError("RecursionError", "the array never ends");
      index = item.end;
    }
  }

  /** Returns the value at `start`, or `undefined` if the reading ends there. Only vLLM's reading can end there. */
  #readItem(
    { text, isPartial, depth }: Piece,
    start: number,
    { stops, skipsStrings }: { readonly stops: string; readonly skipsStrings: boolean },
  ): Item | undefined {
    if (text.startsWith(quote, start)) {
      const valueStart = start + quote.length;
      const end = text.indexOf(quote, valueStart);
      if (end === -1) {
        return { value: text.slice(valueStart), end: text.length, isUnterminated: true };
      }
      return { value: text.slice(valueStart, end), end: end + quote.length };
    }
    const bracket = text[start];
    if (bracket === "{" || bracket === "[") {
      const area = { bracket, skipsStrings: bracket === "{" || skipsStrings } as const;
      const { index: end, closed } = findGemmaEnd(text, start + 1, area);
      // SGLang drops the last character of an unclosed value.
      const innerEnd = closed || !this.#isVllm ? lastPoint(text, end) : end;
      const inner = text.slice(start + 1, Math.max(start + 1, innerEnd));
      const piece = { text: inner, isPartial: this.#isVllm && !closed, depth: depth + 1 };
      return { value: bracket === "{" ? this.readObject(piece) : this.#readArray(piece), end };
    }
    let end = start;
    while (end < text.length && !stops.includes(text[end] ?? "")) end += 1;
    const value = pythonStrip(text.slice(start, end));
    if (!this.#isVllm) return { value: readBare(value), end };
    const isWithheld = isPartial && (end >= text.length || value.endsWith("."));
    return end === start || isWithheld ? undefined : { value, end };
  }

  #spend({ text, depth }: Piece): void {
    this.#budget -= text.length;
    if (depth > MAX_DEPTH || this.#budget < 0) {
      throw new PythonError("RecursionError", "maximum recursion depth exceeded");
    }
  }
}

function unquote(key: string): string {
  const isQuoted = key.startsWith(quote) && key.endsWith(quote);
  return isQuoted ? key.slice(quote.length, -quote.length) : key;
}

/** Drops an incomplete quotation mark from the end of a text. */
function dropPartialQuote(text: string): string {
  for (let length = quote.length; length > 0; length -= 1) {
    if (text.endsWith(quote.slice(0, length))) return text.slice(0, -length);
  }
  return text;
}

/** The start of the last character before `end`, which may take two code units. */
function lastPoint(text: string, end: number): number {
  return /[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(Math.max(0, end - 2), end))
    ? end - 2
    : end - 1;
}

function readBare(text: string): PyValue {
  if (text === "true") return true;
  if (text === "false") return false;
  // Avoiding the exceptions is many times faster.
  if (!/\p{Nd}/u.test(text)) return text;
  const read = text.includes(".") ? () => parsePythonFloat(text) : () => parsePythonInt(text);
  return catchPython<PyValue>(read, "ValueError") ?? text;
}
