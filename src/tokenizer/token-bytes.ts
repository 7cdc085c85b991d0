import type { TokenCodec } from "./codec.ts";

/** How vocabularies of SentencePiece spell a single byte. */
const singleByte = /^<0x([0-9A-Fa-f]{2})>$/;

/**
 * The bytes that each id of a text stands for. Joined they are the text's own, where these are UTF-8: a
 * character that several tokens make up is given byte by byte.
 *
 * @param text - What the codec decodes the ids to.
 */
export function tokenBytes(
  codec: Pick<TokenCodec, "bytesOf" | "tokenOf" | "addedTokens">,
  ids: readonly number[],
  text: string,
): readonly Uint8Array[] {
  const added = new Map(codec.addedTokens.map(({ id, content }) => [id, content]));
  const pieces = ids.map((id) => {
    const content = added.get(id);
    if (content !== undefined) return Buffer.from(content);
    return codec.bytesOf?.(id) ?? bytesOfSpelling(codec.tokenOf(id) ?? "");
  });
  const [first] = pieces;
  // Decoders of SentencePiece leave out the space in front of a text.
  const isShortened = first?.[0] === space && !text.startsWith(" ") && codec.bytesOf === undefined;
  return isShortened ? [first.subarray(1), ...pieces.slice(1)] : pieces;
}

const space = 0x20;

function bytesOfSpelling(spelling: string): Uint8Array {
  const byte = singleByte.exec(spelling)?.[1];
  return byte === undefined
    ? Buffer.from(spelling.replaceAll("▁", " "))
    : Buffer.from(byte, "hex");
}
