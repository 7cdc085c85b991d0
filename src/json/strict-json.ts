import { byteOrderMark } from "../text/decode-text.ts";
import { findJsonChange } from "./json-change.ts";

/**
 * Parses JSON like `JSON.parse()`, but refuses values that it would change: a number that is too large, duplicate
 * keys, half of a surrogate pair. Use it for JSON from people and other programs; our own files contain none of
 * these.
 *
 * @throws SyntaxError that names the place.
 */
export function parseStrictJson(text: string): unknown {
  if (text.startsWith(byteOrderMark)) {
    throw new SyntaxError("it begins with a byte order mark (U+FEFF), expected JSON without one");
  }
  const value: unknown = JSON.parse(text);
  const change = findJsonChange(text);
  if (change !== undefined) throw new SyntaxError(change);
  return value;
}
