import type { TokenCodec } from "./codec.ts";

/** A single byte in vocabularies of SentencePiece. */
const singleByte = /^<0x([0-9A-Fa-f]{2})>$/;

/**
 * Returns the bytes of each id of a text. Joined, they are the text's bytes. A character of several
 * tokens is split by bytes. If the bytes cannot be determined, returns the text of each id.
 */
export async function tokenBytes(
  codec: Pick<TokenCodec, "bytesOf" | "tokenOf" | "addedTokens" | "decode">,
  ids: readonly number[],
): Promise<readonly Uint8Array[]> {
  const added = new Map(codec.addedTokens.map(({ id, content }) => [id, content]));
  const pieces = ids.map((id) => {
    const content = added.get(id);
    if (content !== undefined) return Buffer.from(content);
    return codec.bytesOf?.(id) ?? bytesOfTokenText(codec.tokenOf(id) ?? "");
  });
  if (codec.bytesOf !== undefined) return pieces;
  const text = await codec.decode(ids);
  const trimmed = withoutFirstSpace(pieces, text);
  if (Buffer.concat(trimmed).toString() === text) return trimmed;
  return await Promise.all(ids.map(async (id) => Buffer.from(await codec.decode([id]))));
}

const space = 0x20;

/** Removes the space before the first token, which SentencePiece's decoders omit. */
function withoutFirstSpace(pieces: readonly Uint8Array[], text: string): readonly Uint8Array[] {
  const [first, ...rest] = pieces;
  return first?.[0] === space && !text.startsWith(" ") ? [first.subarray(1), ...rest] : pieces;
}

function bytesOfTokenText(tokenText: string): Uint8Array {
  const byte = singleByte.exec(tokenText)?.[1];
  return byte === undefined
    ? Buffer.from(tokenText.replaceAll("▁", " "))
    : Buffer.from(byte, "hex");
}
