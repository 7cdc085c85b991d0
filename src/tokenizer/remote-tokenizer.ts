import { RolloutError } from "../errors.ts";
import { assertTextLength } from "./text-length.ts";
import type { OpenPort, PortProgram, TokenizerPort } from "./tokenizer-port.ts";
import type { Instance, TokenizerReply, TokenizerRequest } from "./tokenizer-server.ts";

interface Waiting {
  readonly resolve: (reply: TokenizerReply) => void;
  readonly reject: (error: Error) => void;
}

/** How a tokenizer elsewhere is reached. */
export interface RemoteTokenizerOptions extends PortProgram {
  readonly open: OpenPort;
  /** The text of each instance's document, asked for when the instance is first needed. */
  readonly documents: Readonly<Record<Instance, () => string>>;
  /** Longest wait for an answer, in milliseconds. Default none. */
  readonly deadlineMs?: number;
}

/** Lone surrogates, which UTF-8 cannot hold; the native tokenizer replaces them as well. */
const loneSurrogate = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/**
 * A tokenizer in a thread or process of its own, and the requests that it has not answered yet. One
 * that died is started again at the next request; who waited for it is told.
 */
export class RemoteTokenizer {
  readonly #options: RemoteTokenizerOptions;
  readonly #waiting = new Map<number, Waiting>();
  #port: TokenizerPort | undefined;
  #loading = new Map<Instance, Promise<unknown>>();
  #loaded = new Set<Instance>();
  #nextId = 0;
  #closed: RolloutError | undefined;

  constructor(options: RemoteTokenizerOptions) {
    this.#options = options;
  }

  /** Waits until the instance is loaded. @throws RolloutError where the library refuses it. */
  async load(instance: Instance): Promise<void> {
    if (this.#closed !== undefined) throw this.#closed;
    const loading =
      this.#loading.get(instance) ??
      this.#request({ type: "load", instance, text: this.#options.documents[instance]() });
    this.#loading.set(instance, loading);
    const loaded = this.#loaded;
    await loading;
    loaded.add(instance);
  }

  /** @throws RolloutError `internal/tokenizer` where it fails or the text is too long. */
  async encode(instance: Instance, text: string): Promise<number[]> {
    if (text === "") return [];
    const { ids } = await this.#ask("encode", instance, text);
    return Array.from(ids ?? []);
  }

  /**
   * A text's ids, and which of its pieces each is of. The native library alone.
   *
   * @throws RolloutError `internal/tokenizer` where it fails or the text is too long.
   */
  async cut(
    instance: Instance,
    text: string,
  ): Promise<{ readonly symbols: Int32Array; readonly pieces: Int32Array }> {
    const { ids = none, pieces = none } = await this.#ask("cut", instance, text);
    return { symbols: ids, pieces };
  }

  /** @throws RolloutError `internal/tokenizer` where it fails. */
  async decode(ids: readonly number[]): Promise<string> {
    if (!this.#loaded.has("full")) await this.load("full");
    const { text } = await this.#request({ type: "decode", ids: [...ids] });
    return text ?? "";
  }

  async #ask(type: "encode" | "cut", instance: Instance, text: string): Promise<TokenizerReply> {
    assertTextLength(text);
    if (!this.#loaded.has(instance)) await this.load(instance);
    return await this.#request({ type, instance, text: text.replace(loneSurrogate, "\uFFFD") });
  }

  async close(): Promise<void> {
    this.#closed ??= failure(new Error("it was closed"));
    const port = this.#port;
    this.#end(new Error("it was closed"));
    await port?.end();
  }

  #request(request: TokenizerRequest): Promise<TokenizerReply> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) {
        reject(this.#closed);
        return;
      }
      const port = (this.#port ??= this.#open());
      const id = this.#nextId++;
      const timer = this.#startDeadline();
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        if (this.#waiting.size === 0) this.#port?.setBusy(false);
      };
      this.#waiting.set(id, {
        resolve: (reply) => (settle(), resolve(reply)),
        reject: (error) => (settle(), reject(error)),
      });
      port.setBusy(true);
      port.post({ ...request, id });
    });
  }

  #open(): TokenizerPort {
    const { open, serve, library } = this.#options;
    const port = open(
      { serve, library },
      {
        onReply: (reply) => this.#settle(reply),
        onEnd: (why) => {
          if (this.#port === port) this.#end(why);
        },
      },
    );
    return port;
  }

  #startDeadline(): NodeJS.Timeout | undefined {
    const { deadlineMs } = this.#options;
    if (deadlineMs === undefined) return undefined;
    return setTimeout(() => {
      const port = this.#port;
      this.#end(new Error(`it gave no answer within ${deadlineMs} ms`));
      void port?.end();
    }, deadlineMs);
  }

  #settle(reply: TokenizerReply): void {
    const waiting = this.#waiting.get(reply.id);
    if (reply.problem === undefined) waiting?.resolve(reply);
    else waiting?.reject(failure(new Error(reply.problem)));
  }

  /** Forgets the port, so that the next request opens another. */
  #end(why: Error): void {
    this.#port = undefined;
    this.#loading = new Map();
    this.#loaded = new Set();
    for (const { reject } of this.#waiting.values()) reject(failure(why));
  }
}

const none = new Int32Array();

function failure(cause: Error): RolloutError {
  return new RolloutError("internal/tokenizer", `Cannot use the tokenizer: ${cause.message}`, {
    cause,
  });
}
