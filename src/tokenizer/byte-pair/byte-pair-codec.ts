import type * as library from "tokenizers";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { createByteLevelText } from "./byte-level.ts";
import { readBytePairModel } from "./byte-pair-model.ts";
import type { TokenCodec } from "../codec.ts";
import { createLearnedPieces, type LibraryEncoding } from "./learned-pieces.ts";
import { byteCount, type CutText, LibraryCut } from "./library-cut.ts";
import { createPlainCheck } from "../plain-check.ts";
import { assertTextLength } from "../text-length.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/** The ids of a text, with the piece that each belongs to. */
interface MergedText extends LibraryEncoding {
  readonly ids: number[];
  readonly words: (number | null | undefined)[];
}

/**
 * Creates a codec for a byte-level byte-pair model.
 *
 * Hugging Face's tokenizer library splits texts on its own threads, and the merges run here and
 * yield to other tasks. Loading the model into the library as well would take a quarter of the time
 * before the first turn.
 *
 * @returns `undefined` for another kind of model (see `readBytePairModel()`).
 * @throws if the library refuses the file.
 */
export function createBytePairCodec(
  native: typeof library,
  file: TokenizerFile,
): TokenCodec | undefined {
  const model = readBytePairModel(file);
  if (model === undefined) return undefined;
  const { vocabularySize, addedTokens, outline } = file;
  const { tokenTexts, merger, added } = model;
  const addedIds = new Map(addedTokens.map(({ content, id }) => [content, id]));
  const contents = new Map(addedTokens.map(({ content, id }) => [id, content]));
  const tokenOf = (id: number): string | undefined => contents.get(id) ?? tokenTexts.textOf(id);
  const bytes = createByteLevelText(outline, tokenOf);
  if (bytes === undefined) return undefined;
  const learned = createLearnedPieces({ outline, addedTokens, bytes, merger });
  const checkPlain = createPlainCheck(addedTokens);
  const cutter = new LibraryCut(native, outline, added);

  const mergeAll = async ({ symbols, pieces }: CutText): Promise<MergedText> => {
    const ids: number[] = [];
    const words: MergedText["words"] = [];
    let end = 0;
    for (let from = 0; from < symbols.length; from = end) {
      const first = symbols[from] as number;
      const piece = pieces[from];
      end = from + 1;
      while (end < symbols.length && pieces[end] === piece) end += 1;
      const own =
        first < byteCount ? merger.merge(symbols.slice(from, end)) : [added[first - byteCount]!.id];
      for (const id of Array.isArray(own) ? own : await own) {
        ids.push(id);
        words.push(piece);
      }
      if (isTurnOver()) await takeTurn();
    }
    return { ids, words };
  };

  return {
    backend: "native",
    vocabularySize,
    addedTokens,
    idOf: (literal) => addedIds.get(literal) ?? tokenTexts.idOf(literal),
    tokenOf,
    async encode(text) {
      if (text === "") return [];
      const known = learned?.encodeNow(text);
      if (known !== undefined) return known;
      assertTextLength(text);
      const merged = await mergeAll(await cutter.cut("full", text));
      learned?.learn(text, () => merged);
      return merged.ids;
    },
    async encodePlain(text) {
      if (text === "") return [];
      assertTextLength(text);
      const { ids } = await mergeAll(await cutter.cut("plain", text));
      return await checkPlain(ids);
    },
    // Invalid ids decode to nothing.
    decode: async (ids) =>
      (await bytes.decode(ids)) ??
      (await bytes.decode(ids.filter((id) => tokenOf(id) !== undefined))) ??
      "",
    ...(learned && { encodeNow: (text) => learned.encodeNow(text) }),
    decodeNow: (ids) => bytes.decodeNow(ids),
    byteLengthOf: (id) => bytes.byteLengthOf(id),
    bytesOf: (id) => bytes.bytesOf(id),
    close: () => cutter.close(),
  };
}
