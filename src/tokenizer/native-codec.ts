import type * as native from "tokenizers";
import type { Encoding, Tokenizer } from "tokenizers";
import { createByteLevelText } from "./byte-pair/byte-level.ts";
import { createBytePairCodec } from "./byte-pair/byte-pair-codec.ts";
import type { AddedToken, TokenCodec } from "./codec.ts";
import { createLearnedPieces } from "./byte-pair/learned-pieces.ts";
import { createPlainCheck } from "./plain-check.ts";
import { RemoteTokenizer } from "./remote/remote-tokenizer.ts";
import { assertTextLength } from "./text-length.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { loadSharedModel } from "./shared-model.ts";
import { openProcess, openThread } from "./remote/tokenizer-port.ts";
import { serveNative } from "./remote/tokenizer-server.ts";
import { askLibrary } from "./remote/tokenizer-failure.ts";
import { createVocabulary, numberedBy, sizeWith } from "./byte-pair/vocabulary.ts";

/** Hugging Face's own tokenizer library. */
export type NativeLibrary = typeof native;

/**
 * A codec on Hugging Face's own tokenizer, which works on threads of its own: encoding does not
 * hold up the event loop. The library reads the file itself, and answers what ids and spellings there
 * are.
 *
 * The instance that knows the added tokens cannot be asked to overlook them: there are two, on one
 * model where the file allows it. Elsewhere the second is loaded when text that spells an added token
 * first needs it, which is seldom, in a thread.
 *
 * @throws where the library refuses the file.
 */
export async function createNativeCodec(
  library: NativeLibrary,
  file: TokenizerFile,
): Promise<TokenCodec> {
  const own = createBytePairCodec(library, file);
  if (own !== undefined) return own;
  const shared = await loadSharedModel(library, file);
  const tokenizer = shared?.full ?? library.Tokenizer.fromFile(file.path);
  const ids = file.addedTokens.map(({ content }) => tokenizer.tokenToId(content));
  const addedTokens = numberedBy(file, ids);
  const vocabularySize = sizeWith(addedTokens, file);
  // A file may ask for texts to be cut at a length or filled up to it, which no prompt may be.
  tokenizer.disableTruncation();
  tokenizer.disablePadding();
  const plain = shared ? undefined : nativeElsewhere(file, openThread);
  const encodeBy = async (instance: Tokenizer, text: string): Promise<Encoding> => {
    assertTextLength(text);
    return await askLibrary(() => instance.encode(text, null, { addSpecialTokens: false }));
  };
  const checkPlain = createPlainCheck(addedTokens);
  /** Each turn's ids are looked up, and asking the library costs a microsecond. */
  const spellings = new Map<number, string>();
  const tokenOf = (id: number): string | undefined => {
    if (!Number.isInteger(id) || id < 0 || id >= vocabularySize) return undefined;
    let spelling = spellings.get(id);
    if (spelling === undefined) {
      spelling = tokenizer.idToToken(id) ?? undefined;
      if (spelling !== undefined) spellings.set(id, spelling);
    }
    return spelling;
  };
  const bytes = createByteLevelText(file.outline, tokenOf);
  const idOf = (literal: string): number | undefined => tokenizer.tokenToId(literal) ?? undefined;
  const learned = createLearnedPieces({ outline: file.outline, addedTokens, bytes });
  return {
    backend: "native",
    vocabularySize,
    addedTokens,
    idOf,
    tokenOf,
    async encode(text) {
      if (text === "") return [];
      const known = learned?.encodeNow(text);
      if (known !== undefined) return known;
      const encoding = await encodeBy(tokenizer, text);
      const ids = encoding.getIds();
      learned?.learn(text, () => ({ ids, words: encoding.getWordIds() }));
      return ids;
    },
    encodePlain: async (text) => {
      if (text === "") return [];
      return checkPlain(
        shared ? (await encodeBy(shared.plain, text)).getIds() : await plain!.encode("plain", text),
      );
    },
    decode: async (ids) =>
      (await bytes?.decode(ids)) ??
      (ids.length === 0 ? "" : await askLibrary(() => tokenizer.decode([...ids], false))),
    ...(learned && { encodeNow: (text) => learned.encodeNow(text) }),
    ...(bytes && { decodeNow: (ids) => bytes.decodeNow(ids) }),
    close: async () => await plain?.close(),
  };
}

/** Longest that an isolated tokenizer may think about one text, in milliseconds. */
const isolatedDeadlineMs = 120_000;

/**
 * The same library in a process of its own, for files whose patterns nobody knows: one that runs wild
 * ends that process or holds it up, and is told as an error here.
 *
 * @throws RolloutError `internal/tokenizer` where the library refuses the file or dies of it.
 */
export async function createIsolatedCodec(
  file: TokenizerFile,
  deadlineMs = isolatedDeadlineMs,
): Promise<TokenCodec & { close(): Promise<void> }> {
  const remote = nativeElsewhere(file, openProcess, deadlineMs);
  let addedTokens: readonly AddedToken[];
  try {
    addedTokens = numberedBy(
      file,
      await remote.idsOf(file.addedTokens.map(({ content }) => content)),
    );
  } catch (cause) {
    await remote.close();
    throw cause;
  }
  const checkPlain = createPlainCheck(addedTokens);
  const vocabulary = createVocabulary(file, addedTokens);
  const bytes = createByteLevelText(file.outline, vocabulary.tokenOf);
  return {
    backend: "native",
    ...vocabulary,
    encode: (text) => remote.encode("full", text),
    encodePlain: async (text) => checkPlain(await remote.encode("plain", text)),
    decode: async (ids) =>
      (await bytes?.decode(ids)) ?? (ids.length === 0 ? "" : await remote.decode(ids)),
    ...(bytes !== undefined && { decodeNow: (ids) => bytes.decodeNow(ids) }),
    close: () => remote.close(),
  };
}

function nativeElsewhere(
  file: TokenizerFile,
  open: typeof openThread,
  deadlineMs?: number,
): RemoteTokenizer {
  return new RemoteTokenizer({
    open,
    serve: serveNative,
    library: "tokenizers",
    documents: { full: () => file.fullText(), plain: () => file.plainText() },
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
}
