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
import { callLibrary } from "./remote/tokenizer-failure.ts";
import { createVocabulary, numberedBy, sizeWith } from "./byte-pair/vocabulary.ts";

/** Hugging Face's own tokenizer library. */
export type NativeLibrary = typeof native;

/**
 * Creates a codec on Hugging Face's own tokenizer, which works on its own threads, so encoding does
 * not block the event loop. The library reads the file itself and looks up ids and token texts.
 *
 * An instance that knows the added tokens cannot ignore them, so there are two instances. They
 * share one model if the file allows it. Otherwise a thread loads the second instance when a text
 * first needs it, which is seldom.
 *
 * @throws if the library refuses the file.
 */
export async function createNativeCodec(
  library: NativeLibrary,
  file: TokenizerFile,
): Promise<TokenCodec> {
  const own = await createBytePairCodec(library, file);
  if (own !== undefined) return own;
  const shared = await loadSharedModel(library, file);
  const tokenizer = shared?.full ?? library.Tokenizer.fromFile(file.path);
  const ids = file.addedTokens.map(({ content }) => tokenizer.tokenToId(content));
  const addedTokens = numberedBy(file, ids);
  const vocabularySize = sizeWith(addedTokens, file);
  // A file can configure truncation or padding, which must not apply to prompts.
  tokenizer.disableTruncation();
  tokenizer.disablePadding();
  const plain = shared ? undefined : createRemote(file, openThread);
  const encodeBy = async (instance: Tokenizer, text: string): Promise<Encoding> => {
    assertTextLength(text);
    return await callLibrary(() => instance.encode(text, null, { addSpecialTokens: false }));
  };
  const checkPlain = createPlainCheck(addedTokens);
  /** Cached token texts. Each turn looks up its ids, and the library takes a microsecond per id. */
  const tokenTexts = new Map<number, string>();
  const tokenOf = (id: number): string | undefined => {
    if (!Number.isInteger(id) || id < 0 || id >= vocabularySize) return undefined;
    let tokenText = tokenTexts.get(id);
    if (tokenText === undefined) {
      tokenText = tokenizer.idToToken(id) ?? undefined;
      if (tokenText !== undefined) tokenTexts.set(id, tokenText);
    }
    return tokenText;
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
      (ids.length === 0 ? "" : await callLibrary(() => tokenizer.decode([...ids], false))),
    ...(learned && { encodeNow: (text) => learned.encodeNow(text) }),
    ...(bytes && { decodeNow: (ids) => bytes.decodeNow(ids) }),
    close: async () => await plain?.close(),
  };
}

/** Time limit for one text in an isolated tokenizer, in milliseconds. */
const isolatedDeadlineMs = 120_000;

/**
 * Creates a codec on the same library in its own process, for files with unknown patterns. A
 * pattern that matches forever only ends or blocks that process, and becomes an error here.
 *
 * @throws RolloutError `internal/tokenizer` if the library refuses the file or crashes.
 */
export async function createIsolatedCodec(
  file: TokenizerFile,
  deadlineMs = isolatedDeadlineMs,
): Promise<TokenCodec & { close(): Promise<void> }> {
  const remote = createRemote(file, openProcess, deadlineMs);
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

function createRemote(
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
