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

/** How a tokenizer elsewhere is reached, and what it is asked at once. */
interface RemoteTokenizerOptions extends TokenizerSessionOptions {
  /** Most requests that it is given at once. Default: as many as it has threads that run. */
  readonly atOnce?: number;
}

/** Something that is asked. */
interface Question {
  /** What it takes to be loaded. */
  readonly instance: Instance;
  /** Absent where loading is all. */
  readonly request?: TokenizerRequest;
  /** The tokenizer died over this or over another one: it is asked alone. */
  readonly isSuspect: boolean;
  readonly resolve: (reply: TokenizerReply | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Lone surrogates, which UTF-8 cannot hold; the native tokenizer replaces them as well. */
const loneSurrogate = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/**
 * A tokenizer in a thread or process of its own. It is given so many texts as it works on at once, so that the
 * time that one may take begins with it. One that died is started again: what it was working on is asked once more,
 * one after the other, and whoever's text it dies of alone is told.
 */
export class RemoteTokenizer {
  readonly #options: RemoteTokenizerOptions;
  readonly #queue: Question[] = [];
  readonly #begun = new Set<Question>();
  #session: TokenizerSession | undefined;
  #closed: RolloutError | undefined;

  constructor(options: RemoteTokenizerOptions) {
    this.#options = options;
  }

  /** Waits until the instance is loaded. @throws RolloutError where the library refuses it. */
  async load(instance: Instance): Promise<void> {
    await this.#ask(instance);
  }

  /** @throws RolloutError `internal/tokenizer` where it fails, `internal/text-too-long`. */
  async encode(instance: Instance, text: string): Promise<number[]> {
    if (text === "") return [];
    const { ids } = await this.#askOfText("encode", instance, text);
    return Array.from(ids ?? []);
  }

  /**
   * A text's ids, and which of its pieces each is of. The native library alone.
   *
   * @throws RolloutError `internal/tokenizer` where it fails, `internal/text-too-long`.
   */
  async cut(
    instance: Instance,
    text: string,
  ): Promise<{ readonly symbols: Int32Array; readonly pieces: Int32Array }> {
    const { ids = none, pieces = none } = await this.#askOfText("cut", instance, text);
    return { symbols: ids, pieces };
  }

  /** @throws RolloutError `internal/tokenizer` where it fails. */
  async decode(ids: readonly number[]): Promise<string> {
    const reply = await this.#ask("full", { type: "decode", ids: [...ids] });
    return reply?.text ?? "";
  }

  /**
   * The library's ids of some tokens; `undefined` for those that it does not have.
   *
   * @throws RolloutError `internal/tokenizer` where it fails.
   */
  async idsOf(tokens: readonly string[]): Promise<readonly (number | undefined)[]> {
    const { ids = none } = (await this.#ask("full", { type: "ids", tokens })) ?? {};
    return Array.from(ids, (id) => (id === -1 ? undefined : id));
  }

  async close(): Promise<void> {
    const why = new Error("it was closed");
    this.#closed ??= tokenizerFailure(why);
    for (const { reject } of this.#queue.splice(0)) reject(this.#closed);
    await this.#session?.end(why);
  }

  async #askOfText(
    type: "encode" | "cut",
    instance: Instance,
    text: string,
  ): Promise<TokenizerReply | Record<string, never>> {
    assertTextLength(text);
    const request = { type, instance, text: text.replace(loneSurrogate, "\uFFFD") };
    return (await this.#ask(instance, request)) ?? {};
  }

  #ask(instance: Instance, request?: TokenizerRequest): Promise<TokenizerReply | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) {
        reject(this.#closed);
        return;
      }
      const asked = { instance, ...(request && { request }) };
      this.#queue.push({ ...asked, isSuspect: false, resolve, reject });
      this.#handOut();
    });
  }

  #handOut(): void {
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (!this.#mayBegin(next)) return;
      this.#queue.shift();
      void this.#begin(next);
    }
  }

  #mayBegin({ isSuspect }: Question): boolean {
    const isAlone = isSuspect || [...this.#begun].some((begun) => begun.isSuspect);
    return this.#begun.size < (isAlone ? 1 : (this.#options.atOnce ?? threadCount));
  }

  async #begin(question: Question): Promise<void> {
    this.#begun.add(question);
    try {
      question.resolve(await this.#answer(question));
    } catch (error) {
      if (!(error instanceof TokenizerEnded)) question.reject(error);
      else if (this.#closed !== undefined) question.reject(this.#closed);
      else if (error.wasAlone) question.reject(tokenizerFailure(error));
      else this.#queue.unshift({ ...question, isSuspect: true });
    } finally {
      this.#begun.delete(question);
      this.#handOut();
    }
  }

  async #answer({ instance, request }: Question): Promise<TokenizerReply | undefined> {
    if (this.#session === undefined || this.#session.hasEnded) {
      this.#session = new TokenizerSession(this.#options);
    }
    const session = this.#session;
    if (!session.isLoaded(instance)) await session.load(instance);
    return request && (await session.request(request));
  }
}

const none = new Int32Array();

/** The native library works on libuv's threads, of which there are four. */
const threadCount = Math.min(4, availableParallelism());
