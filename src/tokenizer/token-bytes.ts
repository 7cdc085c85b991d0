import type { TokenCodec } from "./codec.ts";

/** How vocabularies of SentencePiece spell a single byte. */
const singleByte = /^<0x([0-9A-Fa-f]{2})>$/;

/**
 * The bytes that each id of a text stands for. Joined they are the text's own: a character that several
 * tokens make up is given byte by byte. A vocabulary whose spellings are not known gives each id's text.
 */
export async function tokenBytes(
  codec: Pick<TokenCodec, "bytesOf" | "tokenOf" | "addedTokens" | "decode">,
  ids: readonly number[],
): Promise<readonly Uint8Array[]> {
  const added = new Map(codec.addedTokens.map(({ id, content }) => [id, content]));
  const pieces = ids.map((id) => {
    const content = added.get(id);
    if (content !== undefined) return Buffer.from(content);
    return codec.bytesOf?.(id) ?? bytesOfSpelling(codec.tokenOf(id) ?? "");
  });
  if (codec.bytesOf !== undefined) return pieces;
  const text = await codec.decode(ids);
  const whole = withoutFirstSpace(pieces, text);
  if (Buffer.concat(whole).toString() === text) return whole;
  return await Promise.all(ids.map(async (id) => Buffer.from(await codec.decode([id]))));
}

const space = 0x20;

/** Decoders of SentencePiece leave out the space in front of a text. */
function withoutFirstSpace(pieces: readonly Uint8Array[], text: string): readonly Uint8Array[] {
  const [first, ...rest] = pieces;
  return first?.[0] === space && !text.startsWith(" ") ? [first.subarray(1), ...rest] : pieces;
}

function bytesOfSpelling(spelling: string): Uint8Array {
  const byte = singleByte.exec(spelling)?.[1];
  return byte === undefined ? Buffer.from(spelling.replaceAll("▁", " ")) : Buffer.from(byte, "hex");
}
