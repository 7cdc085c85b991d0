import type * as library from "tokenizers";
import type { Tokenizer } from "tokenizers";
import type { TokenCodec } from "./codec.ts";
import { createPlainCheck } from "./plain-check.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { createVocabulary } from "./vocabulary.ts";

/** Hugging Face's own tokenizer library. */
export type NativeLibrary = typeof library;

const withoutSpecials = { addSpecialTokens: false } as const;

/**
 * A codec on Hugging Face's own tokenizer, which works on threads of its own: encoding does not
 * hold up the event loop. Two instances are kept, because the one that knows the added tokens
 * cannot be asked to overlook them.
 *
 * @throws where the library refuses the file.
 */
export function createNativeCodec({ Tokenizer }: NativeLibrary, file: TokenizerFile): TokenCodec {
  const full = Tokenizer.fromString(JSON.stringify(file.full));
  const plain = Tokenizer.fromString(JSON.stringify(file.plain));
  const checkPlain = createPlainCheck(file.addedTokens);
  return {
    backend: "native",
    ...createVocabulary(file),
    encode: (text) => encode(full, text),
    encodePlain: async (text) => checkPlain(await encode(plain, text)),
    decode: async (ids) => (ids.length === 0 ? "" : await full.decode([...ids], false)),
  };
}

async function encode(tokenizer: Tokenizer, text: string): Promise<number[]> {
  if (text === "") return [];
  return (await tokenizer.encode(text, null, withoutSpecials)).getIds();
}
