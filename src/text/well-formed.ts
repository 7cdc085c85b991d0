/** Text methods that Node.js has and the compiler's es2023 library lacks. */
interface UnicodeText {
  isWellFormed(): boolean;
  toWellFormed(): string;
}

/** True if a text has no half of a surrogate pair, which UTF-8 cannot represent. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as UnicodeText).isWellFormed();
}

/**
 * Replaces escaped halves of surrogate pairs in the text of `JSON.stringify()`: strict readers such as orjson and
 * Arrow refuse a file with such an escape.
 */
export function wellFormedJson(json: string): string {
  if (!json.includes("\\ud")) return json;
  return json.replaceAll(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\uFFFD");
}

/** Returns the text with U+FFFD for each half of a surrogate pair, as tokenizers read it. */
export function toWellFormed(text: string): string {
  return (text as unknown as UnicodeText).toWellFormed();
}

/** Returns a text with the JSON escape of each half of a surrogate pair, which UTF-8 cannot represent. */
export function escapeHalves(text: string): string {
  if (isWellFormed(text)) return text;
  return text.replaceAll(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}
