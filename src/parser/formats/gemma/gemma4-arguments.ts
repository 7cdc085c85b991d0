import { PythonError } from "../../../python/python-error.ts";
import { pythonStrip } from "../../../python/text/strip.ts";
import type { PyValue } from "../../../python/value.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { skipCharacters } from "../../shared/text/skip-characters.ts";

const quote = '<|"|>';

/** The deepest nesting that is read, as Python's recursion limit does. */
const MAX_DEPTH = 512;

/**
 * The most times, in multiples of the text's length, that nested values may be read again. It keeps
 * the time linear.
 */
const MAX_READS = 64;

/**
 * Reads the arguments of a Gemma 4 call: keys, colons and values. Strings stand between `<|"|>`;
 * any other value is a number, a boolean or text.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/gemma4_detector.py`.
 *
 * @throws PythonError `RecursionError` for values that nest too deep.
 */
export function parseGemmaArguments(text: string): PyValue {
  return new GemmaReader(MAX_READS * text.length + 10_000).readObject(text, 0);
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
export function findGemmaEnd(
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

class GemmaReader {
  #budget: number;

  constructor(budget: number) {
    this.#budget = budget;
  }

  readObject(text: string, depth: number): PyValue {
    this.#spend(text.length, depth);
    const members = new Map<string, PyValue>();
    let index = 0;
    for (;;) {
      index = skipCharacters(text, index, " ,\n\t");
      const colon = index < text.length ? text.indexOf(":", index) : -1;
      if (colon === -1) return members;
      const key = pythonStrip(text.slice(index, colon));
      index = skipCharacters(text, colon + 1, " \n\t");
      if (index >= text.length) {
        members.set(key, "");
        return members;
      }
      const item = this.#readItem(text, index, { depth, stops: ",}]", skipsStrings: true });
      members.set(key, item.value);
      index = item.end;
    }
  }

  #readArray(text: string, depth: number): PyValue {
    this.#spend(text.length, depth);
    const items: PyValue[] = [];
    let index = 0;
    for (;;) {
      index = skipCharacters(text, index, " ,\n\t");
      if (index >= text.length) return items;
      const item = this.#readItem(text, index, { depth, stops: ",]", skipsStrings: false });
      items.push(item.value);
      // A stray closing bracket would be read forever.
      if (item.end === index) throw new PythonError("RecursionError", "the array never ends");
      index = item.end;
    }
  }

  #readItem(
    text: string,
    start: number,
    place: { readonly depth: number; readonly stops: string; readonly skipsStrings: boolean },
  ): { value: PyValue; end: number } {
    if (text.startsWith(quote, start)) {
      const valueStart = start + quote.length;
      const end = text.indexOf(quote, valueStart);
      if (end === -1) return { value: text.slice(valueStart), end: text.length };
      return { value: text.slice(valueStart, end), end: end + quote.length };
    }
    const first = text[start];
    if (first === "{" || first === "[") {
      // Lists inside lists are matched without regard to strings.
      const skipsStrings = first === "{" || place.skipsStrings;
      const { index } = findGemmaEnd(text, start + 1, { bracket: first, skipsStrings });
      const inner = text.slice(start + 1, Math.max(start + 1, lastPoint(text, index)));
      const value =
        first === "{"
          ? this.readObject(inner, place.depth + 1)
          : this.#readArray(inner, place.depth + 1);
      return { value, end: index };
    }
    let end = start;
    while (end < text.length && !place.stops.includes(text[end] ?? "")) end += 1;
    return { value: readBare(text.slice(start, end)), end };
  }

  #spend(length: number, depth: number): void {
    this.#budget -= length;
    if (depth > MAX_DEPTH || this.#budget < 0) {
      throw new PythonError("RecursionError", "maximum recursion depth exceeded");
    }
  }
}

/** The start of the last character before `end`, which may take two code units. */
function lastPoint(text: string, end: number): number {
  return /[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(Math.max(0, end - 2), end))
    ? end - 2
    : end - 1;
}

function readBare(raw: string): PyValue {
  const text = pythonStrip(raw);
  if (text === "true") return true;
  if (text === "false") return false;
  // Avoiding the exceptions is many times faster.
  if (!/\p{Nd}/u.test(text)) return text;
  const read = text.includes(".") ? () => parsePythonFloat(text) : () => parsePythonInt(text);
  return catchPython<PyValue>(read, "ValueError") ?? text;
}
