import type { Tokenizer } from "tokenizers";
import type { TokenCodec } from "./codec.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";

const withoutSpecials = { addSpecialTokens: false } as const;

/**
 * A codec on Hugging Face's own tokenizer, which works on threads of its own: encoding does not
 * hold up the event loop. Two instances are kept, because the one that knows the added tokens
 * cannot be asked to overlook them.
 *
 * @throws where the native library does not load on this machine, or refuses the file.
 */
export async function createNativeCodec({ document, addedTokens }: TokenizerFile): Promise<TokenCodec> {
  const { Tokenizer } = await import("tokenizers");
  const full = Tokenizer.fromString(JSON.stringify(document));
  const plain = Tokenizer.fromString(JSON.stringify({ ...document, added_tokens: [] }));
  const highest = Math.max(-1, ...addedTokens.map(({ id }) => id));
  return {
    backend: "native",
    vocabularySize: Math.max(full.getVocabSize(true), highest + 1),
    addedTokens,
    encode: (text) => encode(full, text),
    encodePlain: (text) => encode(plain, text),
    decode: async (ids) => (ids.length === 0 ? "" : await full.decode([...ids], false)),
    idOf: (literal) => full.tokenToId(literal) ?? undefined,
    tokenOf: (id) => full.idToToken(id) ?? undefined,
  };
}

async function encode(tokenizer: Tokenizer, text: string): Promise<number[]> {
  if (text === "") return [];
  return (await tokenizer.encode(text, null, withoutSpecials)).getIds();
}
