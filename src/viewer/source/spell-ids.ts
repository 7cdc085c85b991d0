import type { Vocabulary } from "../../tokenizer/byte-pair/vocabulary.ts";
import type { TokenPiece } from "../model/row-columns.ts";

/**
 * Returns the text of each distinct id. Looks the texts up instead of decoding, so that parts of
 * characters and leading spaces stay: vocabularies write bytes in GPT-2's alphabet, or as
 * SentencePiece does. An id outside the vocabulary has no text. `more` are ids that do not occur in
 * `ids`.
 */
export function spellIds(
  vocabulary: Omit<Vocabulary, "vocabularySize">,
  ids: ArrayLike<number>,
  more: readonly number[] = [],
): readonly TokenPiece[] {
  const added = new Map(vocabulary.addedTokens.map((token) => [token.id, token]));
  const isBytes = vocabulary.idOf("Ġ") !== undefined || vocabulary.idOf("Ċ") !== undefined;
  const pieces: TokenPiece[] = [];
  for (const id of distinctIds(ids, more)) {
    const special = added.get(id);
    if (special !== undefined) {
      pieces.push([id, special.content, "special"]);
      continue;
    }
    const spelling = vocabulary.tokenOf(id);
    if (spelling === undefined) continue;
    if (isBytes && plainSpelling.test(spelling)) {
      pieces.push([id, spelling.replace("Ġ", " "), "text"]);
      continue;
    }
    const bytes = isBytes ? bytesOfAlphabet(spelling) : undefined;
    pieces.push(toPiece(id, bytes ?? bytesOfSentencePiece(spelling)));
  }
  return pieces;
}

/** A number above the ids of every vocabulary. */
const seenLength = 1 << 20;

/** Returns each id once, in order. Rows have millions of ids, for which a `Set` would be slow. */
function distinctIds(ids: ArrayLike<number>, more: readonly number[]): Int32Array {
  const seen = new Uint8Array(seenLength);
  const found: number[] = [];
  const note = (id: number): void => {
    if (id >= 0 && id < seenLength) {
      if (seen[id] === 1) return;
      seen[id] = 1;
    }
    found.push(id);
  };
  for (let index = 0; index < ids.length; index++) note(ids[index]!);
  for (const id of more) note(id);
  return Int32Array.from(found).sort();
}

/** Matches most texts in GPT-2's alphabet: ASCII stands for itself, after the sign for a space. */
const plainSpelling = /^Ġ?[!-~]*$/;

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function toPiece(id: number, bytes: Buffer): TokenPiece {
  try {
    return [id, strictDecoder.decode(bytes), "text"];
  } catch {
    return [id, bytes.toString("hex"), "bytes"];
  }
}

/**
 * GPT-2's alphabet: printable bytes stand for themselves, the others for characters from U+0100 on.
 *
 * **Source:** openai/gpt-2 src/encoder.py (`bytes_to_unicode`).
 */
const byteOfCharacter = ((): ReadonlyMap<string, number> => {
  const isPrintable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x1_00;
  return new Map(
    Array.from({ length: 256 }, (_, byte) => [
      String.fromCodePoint(isPrintable(byte) ? byte : next++),
      byte,
    ]),
  );
})();

function bytesOfAlphabet(spelling: string): Buffer | undefined {
  const bytes: number[] = [];
  for (const character of spelling) {
    const byte = byteOfCharacter.get(character);
    if (byte === undefined) return undefined;
    bytes.push(byte);
  }
  return Buffer.from(bytes);
}

function bytesOfSentencePiece(spelling: string): Buffer {
  const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(spelling)?.[1];
  if (byte !== undefined) return Buffer.from(byte, "hex");
  return Buffer.from(spelling.replaceAll("▁", " "));
}
