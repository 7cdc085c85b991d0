import type * as library from "tokenizers";
import { isTurnOver, takeTurn } from "../internal/take-turn.ts";
import { createByteLevelText } from "./byte-level.ts";
import { readBytePairModel } from "./byte-pair-model.ts";
import type { TokenCodec } from "./codec.ts";
import { createLearnedPieces, type LibraryEncoding } from "./learned-pieces.ts";
import { byteCount, createLibraryCut, type CutText, type LibraryCut } from "./library-cut.ts";
import { createPlainCheck } from "./plain-check.ts";
import { assertTextLength } from "./text-length.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { WholeLibrary } from "./whole-library.ts";

/** A text's ids, and which of its pieces each is of. */
interface MergedText extends LibraryEncoding {
  readonly ids: number[];
  readonly words: (number | null | undefined)[];
}

/** Longest text of which each byte is looked at here, in UTF-16 units: a millisecond or two. */
const maxTextLength = 32_768;

/**
 * A codec on Hugging Face's own tokenizer library for a byte-level byte-pair model: the library cuts texts, on
 * threads of its own, and the model is worked here. For the library to hold the model as well costs a third of all
 * that is done before a first turn; that it does only where a text or a piece is too long to be worked here.
 *
 * @returns `undefined` where the file's model is another (see `readBytePairModel()`).
 * @throws where the library refuses the file.
 */
export function createBytePairCodec(
  native: typeof library,
  file: TokenizerFile,
): TokenCodec | undefined {
  const model = readBytePairModel(file);
  if (model === undefined) return undefined;
  const { vocabularySize, addedTokens, outline } = file;
  const { spellings, merge, added } = model;
  const addedIds = new Map(addedTokens.map(({ content, id }) => [content, id]));
  const contents = new Map(addedTokens.map(({ content, id }) => [id, content]));
  const tokenOf = (id: number): string | undefined => contents.get(id) ?? spellings.spellingOf(id);
  const bytes = createByteLevelText(outline, tokenOf);
  if (bytes === undefined) return undefined;
  const learned = createLearnedPieces({ outline, addedTokens, bytes, merge });
  const checkPlain = createPlainCheck(addedTokens);
  const cutFull = createLibraryCut(native, outline, added);
  const cutPlain = createLibraryCut(native, outline, []);
  const whole = new WholeLibrary(native, file);

  /** The ids of a text that was cut; `undefined` where a piece is too long. */
  const mergeAll = async ({ symbols, pieces }: CutText): Promise<MergedText | undefined> => {
    const ids: number[] = [];
    const words: MergedText["words"] = [];
    let end = 0;
    for (let from = 0; from < symbols.length; from = end) {
      const first = symbols[from] as number;
      const piece = pieces[from];
      end = from + 1;
      while (end < symbols.length && pieces[end] === piece) end += 1;
      const own =
        first < byteCount ? merge(symbols.slice(from, end)) : [added[first - byteCount]!.id];
      if (own === undefined) return undefined;
      for (const id of own) {
        ids.push(id);
        words.push(piece);
      }
      if (isTurnOver()) await takeTurn();
    }
    return { ids, words };
  };
  const encodeBy = async (cut: LibraryCut, text: string): Promise<MergedText | undefined> => {
    assertTextLength(text);
    return text.length <= maxTextLength ? await mergeAll(await cut(text)) : undefined;
  };
  return {
    backend: "native",
    vocabularySize,
    addedTokens,
    idOf: (literal) => addedIds.get(literal) ?? spellings.idOf(literal),
    tokenOf,
    async encode(text) {
      if (text === "") return [];
      const known = learned?.encodeNow(text);
      if (known !== undefined) return known;
      const encoding = await encodeBy(cutFull, text);
      if (encoding === undefined) return await whole.encode("full", text);
      learned?.learn(text, () => encoding);
      return encoding.ids;
    },
    async encodePlain(text) {
      if (text === "") return [];
      const encoding = await encodeBy(cutPlain, text);
      return await checkPlain(encoding?.ids ?? (await whole.encode("plain", text)));
    },
    decode: async (ids) => (await bytes.decode(ids)) ?? (await whole.decode(ids)),
    ...(learned && { encodeNow: (text) => learned.encodeNow(text) }),
    decodeNow: (ids) => bytes.decodeNow(ids),
    close: () => whole.close(),
  };
}
