import { byteOrderMark } from "../text/decode-text.ts";
import { findJsonChange } from "./json-change.ts";

/**
 * Reads JSON as `JSON.parse()` does, and refuses what that would change: a number that is too large, one
 * of two equal keys, half of a surrogate pair. For what people and other programs write; what we wrote
 * ourselves holds none of these.
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
