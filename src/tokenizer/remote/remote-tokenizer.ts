import { toArray } from "../../values/to-array.ts";
import { toWellFormed } from "../../text/well-formed.ts";
import { availableParallelism } from "node:os";
import type { RolloutError } from "../../errors.ts";
import { assertTextLength } from "../text-length.ts";
import { tokenizerFailure } from "./tokenizer-failure.ts";
import type { Instance, TokenizerReply, TokenizerRequest } from "./tokenizer-server.ts";
import {
  TokenizerEnded,
  TokenizerSession,
  type TokenizerSessionOptions,
} from "./tokenizer-session.ts";

/** Settings of a tokenizer in another thread or process. */
interface RemoteTokenizerOptions extends TokenizerSessionOptions {
  /** Maximum number of concurrent requests. Default: the number of the tokenizer's threads. */
  readonly atOnce?: number;
}

/** A request in the queue. */
interface PendingRequest {
  /** The instance that must be loaded. */
  readonly instance: Instance;
  /** The work for the instance. Absent if the instance only needs to be loaded. */
  readonly request?: TokenizerRequest;
  /** True if the tokenizer ended during this request and others. It then runs alone. */
  readonly isSuspect: boolean;
  readonly resolve: (reply: TokenizerReply | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A tokenizer in its own thread or process.
 *
 * It gets only as many texts as it works on at the same time, so that a text's time limit starts with its work. If the
 * tokenizer ends unexpectedly, it is started again and its requests are repeated one by one. A request during which it
 * ends alone fails.
 */
export class RemoteTokenizer {
  readonly #options: RemoteTokenizerOptions;
  readonly #queue: PendingRequest[] = [];
  readonly #running = new Set<PendingRequest>();
  #session: TokenizerSession | undefined;
  #closed: RolloutError | undefined;

  constructor(options: RemoteTokenizerOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the instance is loaded.
   *
   * @throws RolloutError if the library refuses it.
   */
  async load(instance: Instance): Promise<void> {
    await this.#enqueue(instance);
  }

  /**
   * Encodes a text.
   *
   * @throws RolloutError `internal/tokenizer` if the library fails, `internal/text-too-long`.
   */
  async encode(instance: Instance, text: string): Promise<number[]> {
    if (text === "") return [];
    const { ids } = await this.#enqueueText("encode", instance, text);
    return toArray(ids ?? []);
  }

  /**
   * Encodes a text, and returns the piece that each id belongs to. Native library only.
   *
   * @throws RolloutError `internal/tokenizer` if the library fails, `internal/text-too-long`.
   */
  async cut(
    instance: Instance,
    text: string,
  ): Promise<{ readonly symbols: Int32Array; readonly pieces: Int32Array }> {
    const { ids = noIds, pieces = noIds } = await this.#enqueueText("cut", instance, text);
    return { symbols: ids, pieces };
  }

  /**
   * Decodes ids.
   *
   * @throws RolloutError `internal/tokenizer` if the library fails.
   */
  async decode(ids: readonly number[]): Promise<string> {
    const reply = await this.#enqueue("full", { type: "decode", ids: [...ids] });
    return reply?.text ?? "";
  }

  /**
   * Returns the library's ids of tokens, or `undefined` for unknown ones.
   *
   * @throws RolloutError `internal/tokenizer` if the library fails.
   */
  async idsOf(tokens: readonly string[]): Promise<readonly (number | undefined)[]> {
    const { ids = noIds } = (await this.#enqueue("full", { type: "ids", tokens })) ?? {};
    return Array.from(ids, (id) => (id === -1 ? undefined : id));
  }

  async close(): Promise<void> {
    const reason = new Error("it was closed");
    this.#closed ??= tokenizerFailure(reason);
    for (const { reject } of this.#queue.splice(0)) reject(this.#closed);
    await this.#session?.end(reason);
  }

  async #enqueueText(
    type: "encode" | "cut",
    instance: Instance,
    text: string,
  ): Promise<TokenizerReply | Record<string, never>> {
    assertTextLength(text);
    const request = { type, instance, text: toWellFormed(text) };
    return (await this.#enqueue(instance, request)) ?? {};
  }

  #enqueue(instance: Instance, request?: TokenizerRequest): Promise<TokenizerReply | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) {
        reject(this.#closed);
        return;
      }
      const entry = { instance, ...(request && { request }) };
      this.#queue.push({ ...entry, isSuspect: false, resolve, reject });
      this.#runNext();
    });
  }

  #runNext(): void {
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (!this.#mayRun(next)) return;
      this.#queue.shift();
      void this.#run(next);
    }
  }

  #mayRun({ isSuspect }: PendingRequest): boolean {
    const isAlone = isSuspect || [...this.#running].some((running) => running.isSuspect);
    return this.#running.size < (isAlone ? 1 : (this.#options.atOnce ?? threadCount));
  }

  async #run(pending: PendingRequest): Promise<void> {
    this.#running.add(pending);
    try {
      pending.resolve(await this.#answer(pending));
    } catch (error) {
      if (!(error instanceof TokenizerEnded)) pending.reject(error);
      else if (this.#closed !== undefined) pending.reject(this.#closed);
      else if (error.wasAlone) pending.reject(tokenizerFailure(error));
      else this.#queue.unshift({ ...pending, isSuspect: true });
    } finally {
      this.#running.delete(pending);
      this.#runNext();
    }
  }

  async #answer({ instance, request }: PendingRequest): Promise<TokenizerReply | undefined> {
    if (this.#session === undefined || this.#session.hasEnded) {
      this.#session = new TokenizerSession(this.#options);
    }
    const session = this.#session;
    if (!session.isLoaded(instance)) await session.load(instance);
    return request && (await session.request(request));
  }
}

const noIds = new Int32Array();

/** The native library works on libuv's threads, of which there are four. */
const threadCount = Math.min(4, availableParallelism());
