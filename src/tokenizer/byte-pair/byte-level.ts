import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { JsonObject } from "../model-file.ts";

/** How the bytes of ids are joined to text; absent where more than joining is needed. */
export interface ByteLevelText {
  /**
   * The text of the ids, as the library decodes them; `undefined` where it must be asked, for its work
   * or for what it makes of ids that are none.
   */
  decodeNow(ids: readonly number[]): string | undefined;
  /** The same for lists of any length, in turns. */
  decode(ids: readonly number[]): Promise<string | undefined>;
  /** How many bytes an id stands for; `undefined` for what is none. */
  byteLengthOf(id: number): number | undefined;
  /** The bytes that an id stands for; `undefined` for what is none. */
  bytesOf(id: number): Uint8Array | undefined;
}

/** Longest list that is decoded at once: a fraction of a millisecond. */
const maxIdCount = 8192;

/**
 * Decodes byte-level vocabularies without the library, from the ids' spellings: a spelling stands for
 * bytes, and the text is that of all bytes one after the other, in which what is no UTF-8 becomes U+FFFD.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/pre_tokenizers/byte_level.rs` (`decode_chain`).
 *
 * @param outline - The tokenizer's document.
 * @returns `undefined` where the file's decoder is another one.
 */
export function createByteLevelText(
  outline: JsonObject,
  tokenOf: (id: number) => string | undefined,
): ByteLevelText | undefined {
  if ((outline["decoder"] as JsonObject | null | undefined)?.["type"] !== "ByteLevel") {
    return undefined;
  }
  /** The texts of ids that are whole; `null` for those that hold part of a character. */
  const texts: (string | null | undefined)[] = [];
  const bytesOf = (id: number): Buffer | undefined => {
    const spelling = tokenOf(id);
    return spelling === undefined ? undefined : bytesOfSpelling(spelling);
  };
  const textOf = (id: number): string | null => {
    const text = readText(bytesOf(id) ?? nothing);
    texts[id] = text;
    return text;
  };
  const decodeNow = (ids: readonly number[]): string | undefined => {
    if (ids.length > maxIdCount) return undefined;
    let text = "";
    for (const id of ids) {
      if (!Number.isInteger(id) || id < 0 || id > largestId) return undefined;
      const part = texts[id] ?? textOf(id);
      if (part === null) return Buffer.concat(ids.map((one) => bytesOf(one) ?? nothing)).toString();
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
        parts.push(bytesOf(id) ?? nothing);
      }
      return Buffer.concat(parts).toString();
    },
    byteLengthOf: (id) => bytesOf(id)?.length,
    bytesOf,
  };
}

/** Whether what reaches a model behind this pre-tokenizer are bytes, each spelled by its character. */
export function endsInBytes(preTokenizer: unknown): boolean {
  const { type, pretokenizers } = (preTokenizer ?? {}) as JsonObject;
  const last: unknown =
    type === "Sequence" && Array.isArray(pretokenizers) ? pretokenizers.at(-1) : preTokenizer;
  return (last as JsonObject | null | undefined)?.["type"] === "ByteLevel";
}

/** Beyond the largest vocabulary by far; a list of that many places is still one. */
const largestId = 2 ** 24;

const nothing = Buffer.alloc(0);

/** The bytes' text where they are UTF-8 by themselves. */
function readText(bytes: Buffer): string | null {
  const text = bytes.toString();
  return text.includes("\uFFFD") && !Buffer.from(text).equals(bytes) ? null : text;
}

/** The bytes that a spelling stands for; its own where one of its characters stands for none. */
function bytesOfSpelling(spelling: string): Buffer {
  const bytes = Buffer.alloc(spelling.length);
  for (let index = 0; index < spelling.length; index++) {
    const byte = bytesByUnit[spelling.charCodeAt(index)] ?? -1;
    if (byte === -1) return Buffer.from(spelling);
    bytes[index] = byte;
  }
  return bytes;
}

/**
 * The character that spells each byte. Printable ones spell themselves, all others have one from U+0100 on,
 * in their order.
 *
 * **Source:** openai/gpt-2, `src/encoder.py` (`bytes_to_unicode`).
 */
export const byteSpellings: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable =
      (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte <= 0xff && byte !== 0xad);
    return String.fromCharCode(isPrintable ? byte : next++);
  });
})();

/** The byte that each character spells; -1 for one that spells none. */
const bytesByUnit: Int16Array = (() => {
  const units = byteSpellings.map((spelling) => spelling.charCodeAt(0));
  const bytes = new Int16Array(Math.max(...units) + 1).fill(-1);
  for (const [byte, unit] of units.entries()) bytes[unit] = byte;
  return bytes;
})();
