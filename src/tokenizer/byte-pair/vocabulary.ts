import type { AddedToken, TokenCodec } from "../codec.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/** The lookups of a codec: literals and ids, without encoding. */
export type Vocabulary = Pick<TokenCodec, "vocabularySize" | "addedTokens" | "idOf" | "tokenOf">;

/**
 * Creates the lookups of a tokenizer file. Reads its vocabulary at the first call.
 *
 * @param addedTokens - With the ids that the library gives them. Default: the file's ids.
 */
export function createVocabulary(
  file: TokenizerFile,
  addedTokens: readonly AddedToken[] = file.addedTokens,
): Vocabulary {
  let known: TokenTexts | undefined;
  const read = (): TokenTexts => {
    if (known !== undefined) return known;
    const ids = new Map(file.readIds());
    for (const { id, content } of addedTokens) ids.set(content, id);
    const tokenTexts: string[] = [];
    for (const [tokenText, id] of ids) tokenTexts[id] = tokenText;
    // If two token texts share an id, decoders print the added token's.
    for (const { id, content } of addedTokens) tokenTexts[id] = content;
    known = { ids, tokenTexts };
    return known;
  };
  return {
    vocabularySize: sizeWith(addedTokens, file),
    addedTokens,
    idOf: (literal) => read().ids.get(literal),
    tokenOf: (id) => read().tokenTexts[id],
  };
}

/**
 * Returns the file's added tokens with the ids of the encoding library, which renumbers them if the
 * file's ids leave gaps or are used twice.
 *
 * @param idsOf - The library's ids of the tokens, in the same order.
 */
export function numberedBy(
  { addedTokens }: TokenizerFile,
  idsOf: readonly (number | null | undefined)[],
): readonly AddedToken[] {
  return addedTokens.map((token, place) => ({ ...token, id: idsOf[place] ?? token.id }));
}

/** Returns the number of ids, including those that the library assigned. */
export function sizeWith(
  addedTokens: readonly AddedToken[],
  { vocabularySize }: TokenizerFile,
): number {
  return addedTokens.reduce((size, { id }) => Math.max(size, id + 1), vocabularySize);
}

interface TokenTexts {
  readonly ids: ReadonlyMap<string, number>;
  readonly tokenTexts: readonly string[];
}
