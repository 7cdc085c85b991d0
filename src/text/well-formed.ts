/** Methods of texts that Node.js has and the compiler's library of es2023 does not name. */
interface UnicodeText {
  isWellFormed(): boolean;
  toWellFormed(): string;
}

/** Whether a text holds no half of a surrogate pair, which UTF-8 cannot hold. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as UnicodeText).isWellFormed();
}

/**
 * The same for the text of `JSON.stringify()`, which escapes halves of pairs: strict readers such as orjson and
 * Arrow refuse a file with such an escape.
 */
export function wellFormedJson(json: string): string {
  if (!json.includes("\\ud")) return json;
  return json.replaceAll(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\uFFFD");
}

/** The text with U+FFFD in the place of each half of a surrogate pair, as tokenizers read it. */
export function toWellFormed(text: string): string {
  return (text as unknown as UnicodeText).toWellFormed();
}
