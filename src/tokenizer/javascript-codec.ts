import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { RolloutError, UsageError } from "../errors.ts";
import { withResolvers } from "../internal/with-resolvers.ts";
import type { TokenCodec } from "./codec.ts";
import type { TokenizerReply, TokenizerRequest } from "./javascript-codec-worker.ts";
import { serveTokenizer } from "./javascript-codec-worker.ts";
import { createPlainCheck } from "./plain-check.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { createVocabulary } from "./vocabulary.ts";

/** Longest text that is encoded at once, in UTF-16 units: seconds of work for the worker. */
export const maxJavascriptTextLength = 4_000_000;

/**
 * A codec on Hugging Face's tokenizer in JavaScript, for machines on which the native one does not
 * load. It works in a thread of its own, so that a long text does not hold up the event loop; an
 * idle codec does not keep the process alive.
 *
 * @throws UsageError where the library refuses the file.
 */
export async function createJavascriptCodec(
  file: TokenizerFile,
): Promise<TokenCodec & { close(): Promise<void> }> {
  const worker = new TokenizerWorker(file);
  await worker.ready();
  const vocabulary = createVocabulary(file);
  const checkPlain = createPlainCheck(file.addedTokens);
  return {
    backend: "javascript",
    ...vocabulary,
    encode: (text) => worker.encode("full", text),
    encodePlain: async (text) => checkPlain(await worker.encode("plain", text)),
    decode: (ids) => {
      // The library prints an unknown id as the unknown token; the native one leaves it out.
      const known = ids.filter((id) => vocabulary.tokenOf(id) !== undefined);
      return known.length === 0 ? Promise.resolve("") : worker.decode(known);
    },
    close: () => worker.close(),
  };
}

interface Waiting {
  readonly resolve: (reply: TokenizerReply) => void;
  readonly reject: (error: Error) => void;
}

/** Lone surrogates, which UTF-8 cannot hold; the native tokenizer replaces them as well. */
const loneSurrogate = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** A thread that holds the tokenizer, and the requests that it has not answered yet. */
class TokenizerWorker {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;
  #failure: Error | undefined;

  constructor({ full, plain }: TokenizerFile) {
    const library = createRequire(import.meta.url).resolve("@huggingface/tokenizers");
    // The code travels as text, so that it runs alike from the sources and from the build.
    this.#worker = new Worker(`(${serveTokenizer.toString()})(require)`, {
      eval: true,
      workerData: { library, full: JSON.stringify(full), plain: JSON.stringify(plain) },
    });
    this.#worker.unref();
    this.#worker.on("message", (reply: TokenizerReply) => this.#settle(reply));
    this.#worker.on("error", (error) => this.#fail(error));
    this.#worker.on("exit", () => this.#fail(new Error("it ended")));
  }

  /** Waits until the tokenizer is loaded. @throws UsageError where the library refuses the file. */
  async ready(): Promise<void> {
    try {
      await this.#request({ type: "ready" });
    } catch (cause) {
      await this.close();
      throw new UsageError("Cannot load the tokenizer in JavaScript", { cause });
    }
  }

  /** @throws RolloutError `internal/tokenizer` where the thread fails or the text is too long. */
  async encode(instance: "full" | "plain", text: string): Promise<number[]> {
    if (text === "") return [];
    if (text.length > maxJavascriptTextLength) {
      throw new RolloutError(
        "internal/tokenizer",
        `Cannot encode a text of ${text.length} characters: expected at most ` +
          `${maxJavascriptTextLength} where the native tokenizer does not load`,
      );
    }
    const { ids } = await this.#request({
      type: "encode",
      instance,
      text: text.replace(loneSurrogate, "\uFFFD"),
    });
    return Array.from(ids ?? []);
  }

  /** @throws RolloutError `internal/tokenizer` where the thread fails. */
  async decode(ids: readonly number[]): Promise<string> {
    const { text } = await this.#request({ type: "decode", ids: [...ids] });
    return text ?? "";
  }

  async close(): Promise<void> {
    this.#fail(new Error("it was closed"));
    await this.#worker.terminate();
  }

  #request(request: TokenizerRequest): Promise<TokenizerReply> {
    const { promise, resolve, reject } = withResolvers<TokenizerReply>();
    if (this.#failure !== undefined) {
      reject(this.#failure);
      return promise;
    }
    const id = this.#nextId++;
    this.#waiting.set(id, { resolve, reject });
    this.#worker.ref();
    this.#worker.postMessage({ ...request, id });
    return promise;
  }

  #settle(reply: TokenizerReply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if (reply.problem === undefined) waiting?.resolve(reply);
    else waiting?.reject(failure(new Error(reply.problem)));
  }

  #fail(cause: Error): void {
    this.#failure ??= failure(cause);
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
    this.#waiting.clear();
  }
}

function failure(cause: Error): RolloutError {
  return new RolloutError("internal/tokenizer", "Cannot use the tokenizer's thread", { cause });
}
