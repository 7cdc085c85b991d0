import type { AddedToken, TokenCodec } from "../codec.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/** The part of a codec that only looks up: literals and ids, without encoding. */
export type Vocabulary = Pick<TokenCodec, "vocabularySize" | "addedTokens" | "idOf" | "tokenOf">;

/**
 * Makes a tokenizer file's ids and spellings available in both directions; reads them when asked.
 *
 * @param addedTokens - With the ids that whoever encodes gives them. Default: the file's.
 */
export function createVocabulary(
  file: TokenizerFile,
  addedTokens: readonly AddedToken[] = file.addedTokens,
): Vocabulary {
  let known: Spellings | undefined;
  const read = (): Spellings => {
    if (known !== undefined) return known;
    const ids = new Map(file.readIds());
    for (const { id, content } of addedTokens) ids.set(content, id);
    const spellings: string[] = [];
    for (const [spelling, id] of ids) spellings[id] = spelling;
    // Two spellings may share an id; the added token's is the one that decoders print.
    for (const { id, content } of addedTokens) spellings[id] = content;
    known = { ids, spellings };
    return known;
  };
  return {
    vocabularySize: sizeWith(addedTokens, file),
    addedTokens,
    idOf: (literal) => read().ids.get(literal),
    tokenOf: (id) => read().spellings[id],
  };
}

/**
 * The file's added tokens with the ids that the library gives them, which encodes: where the file's leave gaps or
 * are taken, it numbers on.
 *
 * @param idsOf - Its ids of their contents, in their order.
 */
export function numberedBy(
  { addedTokens }: TokenizerFile,
  idsOf: readonly (number | null | undefined)[],
): readonly AddedToken[] {
  return addedTokens.map((token, place) => ({ ...token, id: idsOf[place] ?? token.id }));
}

/** Every id is below it: those of the file, and those that the library numbers itself. */
export function sizeWith(
  addedTokens: readonly AddedToken[],
  { vocabularySize }: TokenizerFile,
): number {
  return addedTokens.reduce((size, { id }) => Math.max(size, id + 1), vocabularySize);
}

interface Spellings {
  readonly ids: ReadonlyMap<string, number>;
  readonly spellings: readonly string[];
}
