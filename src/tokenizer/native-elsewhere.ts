import { RemoteTokenizer } from "./remote-tokenizer.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import type { OpenPort } from "./tokenizer-port.ts";
import { serveNative } from "./tokenizer-server.ts";

/**
 * The native library in a thread or a process of its own, where it reads the whole file when it is first asked.
 *
 * @param deadlineMs - Longest wait for an answer, in milliseconds. Default none.
 */
export function nativeElsewhere(
  file: TokenizerFile,
  open: OpenPort,
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
