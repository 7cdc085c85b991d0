import type * as library from "tokenizers";
import type { TokenCodec } from "./codec.ts";
import { createPlainCheck } from "./plain-check.ts";
import { RemoteTokenizer } from "./remote-tokenizer.ts";
import { assertTextLength } from "./text-length.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { openProcess, openThread } from "./tokenizer-port.ts";
import { serveNative } from "./tokenizer-server.ts";
import { createVocabulary } from "./vocabulary.ts";

/** Hugging Face's own tokenizer library. */
export type NativeLibrary = typeof library;

/**
 * A codec on Hugging Face's own tokenizer, which works on threads of its own: encoding does not
 * hold up the event loop. The library reads the file itself, and answers what ids and spellings there
 * are.
 *
 * The instance that knows the added tokens cannot be asked to overlook them. Text that spells one is
 * seldom, so that the instance for it is loaded when it is first needed, in a thread.
 *
 * @throws where the library refuses the file.
 */
export function createNativeCodec({ Tokenizer }: NativeLibrary, file: TokenizerFile): TokenCodec {
  const { vocabularySize } = file;
  const tokenizer = Tokenizer.fromFile(file.path);
  // Where a file's ids leave gaps the library closes them, and it is the library that encodes.
  const addedTokens = file.addedTokens.map((token) => ({
    ...token,
    id: tokenizer.tokenToId(token.content) ?? token.id,
  }));
  // A file may ask for texts to be cut at a length or filled up to it, which no prompt may be.
  tokenizer.disableTruncation();
  tokenizer.disablePadding();
  const plain = nativeElsewhere(file, openThread);
  const checkPlain = createPlainCheck(addedTokens);
  return {
    backend: "native",
    vocabularySize,
    addedTokens,
    idOf: (literal) => tokenizer.tokenToId(literal) ?? undefined,
    tokenOf: (id) =>
      Number.isInteger(id) && id >= 0 && id < vocabularySize
        ? (tokenizer.idToToken(id) ?? undefined)
        : undefined,
    async encode(text) {
      if (text === "") return [];
      assertTextLength(text);
      return (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
    },
    encodePlain: async (text) => checkPlain(await plain.encode("plain", text)),
    decode: async (ids) => (ids.length === 0 ? "" : await tokenizer.decode([...ids], false)),
    close: () => plain.close(),
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
  try {
    await remote.load("full");
  } catch (cause) {
    await remote.close();
    throw cause;
  }
  const checkPlain = createPlainCheck(file.addedTokens);
  return {
    backend: "native",
    ...createVocabulary(file),
    encode: (text) => remote.encode("full", text),
    encodePlain: async (text) => checkPlain(await remote.encode("plain", text)),
    decode: (ids) => (ids.length === 0 ? Promise.resolve("") : remote.decode(ids)),
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
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
}
