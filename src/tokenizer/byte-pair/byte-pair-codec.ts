import type * as library from "tokenizers";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { createByteLevelText } from "./byte-level.ts";
import { readBytePairModel } from "./byte-pair-model.ts";
import type { TokenCodec } from "../codec.ts";
import { cutsAsLibrary } from "./check-cutter.ts";
import { byteCount, type CutText, LibraryCut } from "./library-cut.ts";
import { PieceMemory } from "./piece-memory.ts";
import { createPieceCutter } from "./piece-splitter.ts";
import { createPlainCheck } from "../plain-check.ts";
import { BytePairTextEncoder } from "./text-encoder.ts";
import { assertTextLength } from "../text-length.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/**
 * Creates a codec for a byte-level byte-pair model.
 *
 * Texts are cut into pieces and merged here, in small steps. Hugging Face's tokenizer library cuts
 * the stretches with characters that releases of Unicode classify differently, and all texts of
 * tokenizers that are not cut here. Loading the model into the library as well would take a quarter
 * of the time before the first turn.
 *
 * @returns `undefined` for another kind of model (see `readBytePairModel()`).
 * @throws if the library refuses the file.
 */
export async function createBytePairCodec(
  native: typeof library,
  file: TokenizerFile,
): Promise<TokenCodec | undefined> {
  const model = readBytePairModel(file);
  if (model === undefined) return undefined;
  const { vocabularySize, addedTokens, outline } = file;
  const { tokenTexts, merger, added } = model;
  const addedIds = new Map(addedTokens.map(({ content, id }) => [content, id]));
  const contents = new Map(addedTokens.map(({ content, id }) => [id, content]));
  const tokenOf = (id: number): string | undefined => contents.get(id) ?? tokenTexts.textOf(id);
  const bytes = createByteLevelText(outline, tokenOf);
  if (bytes === undefined) return undefined;
  const checkPlain = createPlainCheck(addedTokens);
  const libraryCut = new LibraryCut(native, outline, added);

  const mergeAll = async ({ symbols, pieces }: CutText): Promise<number[]> => {
    const ids: number[] = [];
    let end = 0;
    for (let from = 0; from < symbols.length; from = end) {
      const first = symbols[from] as number;
      const piece = pieces[from];
      end = from + 1;
      while (end < symbols.length && pieces[end] === piece) end += 1;
      const own =
        first < byteCount ? merger.merge(symbols.slice(from, end)) : [added[first - byteCount]!.id];
      for (const id of Array.isArray(own) ? own : await own) ids.push(id);
      if (isTurnOver()) await takeTurn();
    }
    return ids;
  };

  const createEncoder = async (): Promise<BytePairTextEncoder | undefined> => {
    const cutter = createPieceCutter(outline);
    const literals = added.map(({ content }) => content);
    if (cutter === undefined || !(await cutsAsLibrary(cutter, libraryCut, literals))) {
      return undefined;
    }
    const encodeByLibrary = async (stretch: string): Promise<number[]> =>
      await mergeAll(await libraryCut.cut("plain", stretch));
    const memory = new PieceMemory();
    return new BytePairTextEncoder({ cutter, memory, merger, addedIds, encodeByLibrary });
  };
  const encoder = await createEncoder();

  return {
    backend: "native",
    vocabularySize,
    addedTokens,
    idOf: (literal) => addedIds.get(literal) ?? tokenTexts.idOf(literal),
    tokenOf,
    async encode(text) {
      if (text === "") return [];
      assertTextLength(text);
      if (encoder !== undefined) return await encoder.encode(text, true);
      return await mergeAll(await libraryCut.cut("full", text));
    },
    async encodePlain(text) {
      if (text === "") return [];
      assertTextLength(text);
      const ids =
        encoder === undefined
          ? await mergeAll(await libraryCut.cut("plain", text))
          : await encoder.encode(text, false);
      return await checkPlain(ids);
    },
    // Invalid ids decode to nothing.
    decode: async (ids) =>
      (await bytes.decode(ids)) ??
      (await bytes.decode(ids.filter((id) => tokenOf(id) !== undefined))) ??
      "",
    ...(encoder && { encodeNow: (text) => encoder.encodeNow(text) }),
    decodeNow: (ids) => bytes.decodeNow(ids),
    byteLengthOf: (id) => bytes.byteLengthOf(id),
    bytesOf: (id) => bytes.bytesOf(id),
    close: () => libraryCut.close(),
  };
}
