import type { JsonObject } from "../../values/is-object.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";

/** Decoding of a byte-level vocabulary, in which a token's text encodes its bytes. */
export interface ByteLevelText {
  /**
   * Decodes ids as the library does. Returns `undefined` if the library must decode them, because
   * the list is long or has invalid ids.
   */
  decodeNow(ids: readonly number[]): string | undefined;
  /** Decodes lists of any length, and yields to other tasks. */
  decode(ids: readonly number[]): Promise<string | undefined>;
  /** Returns the number of bytes of a token, or `undefined` for an invalid id. */
  byteLengthOf(id: number): number | undefined;
  /** Returns the bytes of a token, or `undefined` for an invalid id. */
  bytesOf(id: number): Uint8Array | undefined;
}

/** Maximum number of ids to decode at once, in a fraction of a millisecond. */
const maxIdCount = 8192;

/**
 * Decodes byte-level vocabularies without the library.
 *
 * The bytes of all tokens are joined and decoded as UTF-8, and invalid UTF-8 becomes U+FFFD.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/pre_tokenizers/byte_level.rs`
 * (`decode_chain`).
 *
 * @param outline - The tokenizer's document.
 * @returns `undefined` if the file has another decoder.
 */
export function createByteLevelText(
  outline: JsonObject,
  tokenOf: (id: number) => string | undefined,
): ByteLevelText | undefined {
  if ((outline["decoder"] as JsonObject | null | undefined)?.["type"] !== "ByteLevel") {
    return undefined;
  }
  /** Texts by id. `null` for an id that contains a part of a character. */
  const texts: (string | null | undefined)[] = [];
  const bytesOf = (id: number): Buffer | undefined => {
    const tokenText = tokenOf(id);
    return tokenText === undefined ? undefined : bytesOfTokenText(tokenText);
  };
  const textOf = (id: number): string | null => {
    const text = readText(bytesOf(id) ?? noBytes);
    texts[id] = text;
    return text;
  };
  const decodeNow = (ids: readonly number[]): string | undefined => {
    if (ids.length > maxIdCount) return undefined;
    let text = "";
    for (const id of ids) {
      if (!Number.isInteger(id) || id < 0 || id > largestId) return undefined;
      const part = texts[id] ?? textOf(id);
      if (part === null) return Buffer.concat(ids.map((one) => bytesOf(one) ?? noBytes)).toString();
      text += part;
    }
    return text;
  };
  return {
    decodeNow,
    async decode(ids) {
      if (ids.length <= maxIdCount) return decodeNow(ids);
      const parts: Buffer[] = [];
      for (const [place, id] of ids.entries()) {
        if (!Number.isInteger(id) || id < 0 || id > largestId) return undefined;
        if (place % maxIdCount === 0 && isTurnOver()) await takeTurn();
        parts.push(bytesOf(id) ?? noBytes);
      }
      return Buffer.concat(parts).toString();
    },
    byteLengthOf: (id) => bytesOf(id)?.length,
    bytesOf,
  };
}

/** True if the pre-tokenizer passes bytes to the model, each written as one character. */
export function endsInBytes(preTokenizer: unknown): boolean {
  const { type, pretokenizers } = (preTokenizer ?? {}) as JsonObject;
  const last: unknown =
    type === "Sequence" && Array.isArray(pretokenizers) ? pretokenizers.at(-1) : preTokenizer;
  return (last as JsonObject | null | undefined)?.["type"] === "ByteLevel";
}

/** Far above the largest vocabulary, and small enough for a dense array of that length. */
const largestId = 2 ** 24;

const noBytes = Buffer.alloc(0);

/** Decodes bytes, or returns `null` if they are not valid UTF-8 alone. */
function readText(bytes: Buffer): string | null {
  const text = bytes.toString();
  return text.includes("\uFFFD") && !Buffer.from(text).equals(bytes) ? null : text;
}

/**
 * Returns the bytes that a token's text encodes, or its own UTF-8 if one character encodes no byte.
 */
function bytesOfTokenText(tokenText: string): Buffer {
  const bytes = Buffer.alloc(tokenText.length);
  for (let index = 0; index < tokenText.length; index++) {
    const byte = bytesByUnit[tokenText.charCodeAt(index)] ?? -1;
    if (byte === -1) return Buffer.from(tokenText);
    bytes[index] = byte;
  }
  return bytes;
}

/**
 * The character that encodes each byte. Printable bytes are encoded as themselves. All others get
 * the characters from U+0100 on, in order.
 *
 * **Source:** openai/gpt-2, `src/encoder.py` (`bytes_to_unicode`).
 */
export const byteCharacters: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable =
      (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte <= 0xff && byte !== 0xad);
    return String.fromCharCode(isPrintable ? byte : next++);
  });
})();

/** The byte that each character encodes, or -1. */
const bytesByUnit: Int16Array = (() => {
  const units = byteCharacters.map((tokenText) => tokenText.charCodeAt(0));
  const bytes = new Int16Array(Math.max(...units) + 1).fill(-1);
  for (const [byte, unit] of units.entries()) bytes[unit] = byte;
  return bytes;
})();
