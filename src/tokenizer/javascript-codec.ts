import { UsageError } from "../errors.ts";
import { createByteLevelText } from "./byte-pair/byte-level.ts";
import type { AddedToken, TokenCodec } from "./codec.ts";
import { createPlainCheck } from "./plain-check.ts";
import { RemoteTokenizer } from "./remote/remote-tokenizer.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { openThread } from "./remote/tokenizer-port.ts";
import { serveJavascript } from "./remote/tokenizer-server.ts";
import { createVocabulary, numberedBy } from "./byte-pair/vocabulary.ts";

/**
 * Creates a codec on Hugging Face's tokenizer in JavaScript, for machines on which the native one
 * does not load.
 *
 * It works in its own thread, so that a long text does not block the event loop. An idle codec does
 * not keep the process alive.
 *
 * @throws UsageError if the library refuses the file.
 */
export async function createJavascriptCodec(
  file: TokenizerFile,
): Promise<TokenCodec & { close(): Promise<void> }> {
  const remote = new RemoteTokenizer({
    open: openThread,
    serve: serveJavascript,
    library: "@huggingface/tokenizers",
    documents: { full: () => file.fullText(), plain: () => file.plainText() },
  });
  let addedTokens: readonly AddedToken[];
  try {
    const contents = file.addedTokens.map(({ content }) => content);
    addedTokens = numberedBy(file, await remote.idsOf(contents));
  } catch (cause) {
    await remote.close();
    throw new UsageError("Cannot load the tokenizer in JavaScript", { cause });
  }
  const vocabulary = createVocabulary(file, addedTokens);
  const bytes = createByteLevelText(file.outline, vocabulary.tokenOf);
  const checkPlain = createPlainCheck(addedTokens);
  return {
    backend: "javascript",
    ...vocabulary,
    encode: (text) => remote.encode("full", text),
    encodePlain: async (text) => checkPlain(await remote.encode("plain", text)),
    decode: async (ids) => {
      const text = bytes?.decodeNow(ids);
      if (text !== undefined) return text;
      // The library prints an unknown id as the unknown token. The native library omits it.
      const known = ids.filter((id) => vocabulary.tokenOf(id) !== undefined);
      return known.length === 0 ? "" : await remote.decode(known);
    },
    ...(bytes && {
      decodeNow: (ids) => bytes.decodeNow(ids),
      byteLengthOf: (id) => bytes.byteLengthOf(id),
      bytesOf: (id) => bytes.bytesOf(id),
    }),
    close: () => remote.close(),
  };
}
