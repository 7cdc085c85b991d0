/** What the tokenizer's thread is asked. */
export type TokenizerRequest =
  | { readonly type: "ready" }
  | { readonly type: "encode"; readonly instance: "full" | "plain"; readonly text: string }
  | { readonly type: "decode"; readonly ids: readonly number[] };

/** What it answers; `problem` says why it could not. */
export interface TokenizerReply {
  readonly id: number;
  readonly ids?: Int32Array;
  readonly text?: string;
  readonly problem?: string;
}

/**
 * The tokenizer's thread: loads two instances and answers requests one after the other.
 *
 * Its text is what the thread runs, so it uses nothing from around it but its parameter.
 */
export function serveTokenizer(require: NodeJS.Require): void {
  const { parentPort, workerData } = require("node:worker_threads") as WorkerThreads;
  const answer = (reply: TokenizerReply) =>
    parentPort.postMessage(reply, reply.ids === undefined ? [] : [reply.ids.buffer]);
  const load = () => {
    const { Tokenizer } = require(workerData.library) as JavascriptLibrary;
    // No cleaning up: texts are read back as they were tokenised.
    const config = { clean_up_tokenization_spaces: false };
    return {
      full: new Tokenizer(JSON.parse(workerData.full) as object, config),
      plain: new Tokenizer(JSON.parse(workerData.plain) as object, config),
    };
  };
  let tokenizers: ReturnType<typeof load> | undefined;
  parentPort.on("message", (request: TokenizerRequest & { readonly id: number }) => {
    const { id } = request;
    try {
      tokenizers ??= load();
      if (request.type === "ready") {
        answer({ id });
      } else if (request.type === "decode") {
        const options = { skip_special_tokens: false, clean_up_tokenization_spaces: false };
        answer({ id, text: tokenizers.full.decode([...request.ids], options) });
      } else {
        const tokenizer = tokenizers[request.instance];
        const { ids } = tokenizer.encode(request.text, { add_special_tokens: false });
        const known = ids.filter((tokenId) => tokenId !== undefined);
        if (known.length < ids.length) throw new Error("the vocabulary lacks part of the text");
        answer({ id, ids: Int32Array.from(known) });
      }
    } catch (error) {
      answer({ id, problem: error instanceof Error ? error.message : String(error) });
    }
  });
}

interface WorkerThreads {
  readonly parentPort: {
    postMessage(reply: TokenizerReply, transfer: readonly ArrayBufferLike[]): void;
    on(
      event: "message",
      listener: (request: TokenizerRequest & { readonly id: number }) => void,
    ): void;
  };
  readonly workerData: { readonly library: string; readonly full: string; readonly plain: string };
}

interface JavascriptTokenizer {
  encode(
    text: string,
    options: { readonly add_special_tokens: boolean },
  ): { readonly ids: readonly (number | undefined)[] };
  decode(
    ids: number[],
    options: {
      readonly skip_special_tokens: boolean;
      readonly clean_up_tokenization_spaces: boolean;
    },
  ): string;
}

/** The part of `@huggingface/tokenizers` that is used; its own types cannot be resolved. */
interface JavascriptLibrary {
  readonly Tokenizer: new (document: object, config: object) => JavascriptTokenizer;
}
