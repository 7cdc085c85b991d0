import { PythonError } from "../../../python/python-error.ts";
import { pythonStrip } from "../../../python/text/strip.ts";
import type { PyDict, PyValue } from "../../../python/value.ts";
import { findGemmaEnd } from "./gemma4-arguments.ts";
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
 * Reads the arguments of a Gemma 4 call as vLLM does: all values are text until the schema types
 * them, and the unfinished end of a nested value is dropped.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/gemma4.py`.
 *
 * @throws PythonError `RecursionError` for values that nest too deep.
 */
export function parseVllmGemmaArguments(text: string): PyDict {
  const reader = new Reader(MAX_READS * text.length + 10_000);
  return reader.readObject({ text, isPartial: false, depth: 0 });
}

/** A part of the text that contains members or items. */
interface Piece {
  readonly text: string;
  /** True if its closing bracket is missing. */
  readonly isPartial: boolean;
  readonly depth: number;
}

class Reader {
  #budget: number;

  constructor(budget: number) {
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
      const key = unquote(pythonStrip(text.slice(index, colon)));
      index = skipCharacters(text, colon + 1, " \n\t");
      if (index >= text.length) {
        if (!isPartial) members.set(key, "");
        return members;
      }
      const item = this.#readItem(piece, index, ",}]");
      if (item === undefined) return members;
      const isCut = isPartial && item.isUnterminated;
      members.set(key, isCut ? stripPartialQuote(item.value as string) : item.value);
      index = item.end;
    }
  }

  #readArray(piece: Piece): PyValue {
    this.#spend(piece);
    const items: PyValue[] = [];
    let index = 0;
    for (;;) {
      index = skipCharacters(piece.text, index, " ,\n\t");
      const item = index < piece.text.length ? this.#readItem(piece, index, ",]") : undefined;
      if (item === undefined) return items;
      items.push(item.value);
      index = item.end;
    }
  }

  /** The value at `start`; `undefined` if reading ends there. */
  #readItem(
    { text, isPartial, depth }: Piece,
    start: number,
    stops: string,
  ): { value: PyValue; end: number; isUnterminated?: boolean } | undefined {
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
      const { index: end, closed } = findGemmaEnd(text, start + 1, { bracket, skipsStrings: true });
      const inner = text.slice(start + 1, closed ? end - 1 : end);
      const piece = { text: inner, isPartial: !closed, depth: depth + 1 };
      return { value: bracket === "{" ? this.readObject(piece) : this.#readArray(piece), end };
    }
    let end = start;
    while (end < text.length && !stops.includes(text[end] ?? "")) end += 1;
    const value = pythonStrip(text.slice(start, end));
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
function stripPartialQuote(text: string): string {
  for (let length = quote.length; length > 0; length -= 1) {
    if (text.endsWith(quote.slice(0, length))) return text.slice(0, -length);
  }
  return text;
}
