import type { TokenCodec } from "./codec.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";

/** The part of a codec that only looks up: literals and ids, without encoding. */
export type Vocabulary = Pick<TokenCodec, "vocabularySize" | "addedTokens" | "idOf" | "tokenOf">;

/** Makes a tokenizer file's ids and spellings available in both directions. */
export function createVocabulary({ ids, addedTokens }: TokenizerFile): Vocabulary {
  const spellings: string[] = [];
  for (const [spelling, id] of ids) spellings[id] = spelling;
  // Two spellings may share an id; the added token's is the one that decoders print.
  for (const { id, content } of addedTokens) spellings[id] = content;
  return {
    vocabularySize: spellings.length,
    addedTokens,
    idOf: (literal) => ids.get(literal),
    tokenOf: (id) => spellings[id],
  };
}
