import type { Vocabulary } from "../../tokenizer/vocabulary.ts";
import type { TokenPiece } from "../model/row-columns.ts";

/**
 * What each distinct id spells, looked up rather than decoded, so that parts of characters and leading
 * blanks are there as they are: vocabularies spell bytes by GPT-2's alphabet or as SentencePiece does.
 * An id that is not of the vocabulary has no piece.
 */
export function spellIds(
  vocabulary: Omit<Vocabulary, "vocabularySize">,
  ids: Iterable<number>,
): readonly TokenPiece[] {
  const distinct = [...new Set(ids)].sort((left, right) => left - right);
  const added = new Map(vocabulary.addedTokens.map((token) => [token.id, token]));
  const isBytes = vocabulary.idOf("Ġ") !== undefined || vocabulary.idOf("Ċ") !== undefined;
  const pieces: TokenPiece[] = [];
  for (const id of distinct) {
    const special = added.get(id);
    if (special !== undefined) {
      pieces.push([id, special.content, "special"]);
      continue;
    }
    const spelling = vocabulary.tokenOf(id);
    if (spelling === undefined) continue;
    const bytes = isBytes ? bytesOfAlphabet(spelling) : undefined;
    pieces.push(toPiece(id, bytes ?? bytesOfSentencePiece(spelling)));
  }
  return pieces;
}

function toPiece(id: number, bytes: Buffer): TokenPiece {
  try {
    return [id, new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), "text"];
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
