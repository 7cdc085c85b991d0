import type { TokenCodec } from "./codec.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";

/** The part of a codec that only looks up: literals and ids, without encoding. */
export type Vocabulary = Pick<TokenCodec, "vocabularySize" | "addedTokens" | "idOf" | "tokenOf">;

/** Makes a tokenizer file's ids and spellings available in both directions; reads them when asked. */
export function createVocabulary(file: TokenizerFile): Vocabulary {
  const { vocabularySize, addedTokens } = file;
  let known: Spellings | undefined;
  const read = (): Spellings => {
    if (known !== undefined) return known;
    const ids = file.readIds();
    const spellings: string[] = [];
    for (const [spelling, id] of ids) spellings[id] = spelling;
    // Two spellings may share an id; the added token's is the one that decoders print.
    for (const { id, content } of addedTokens) spellings[id] = content;
    known = { ids, spellings };
    return known;
  };
  return {
    vocabularySize,
    addedTokens,
    idOf: (literal) => read().ids.get(literal),
    tokenOf: (id) => read().spellings[id],
  };
}

interface Spellings {
  readonly ids: ReadonlyMap<string, number>;
  readonly spellings: readonly string[];
}
