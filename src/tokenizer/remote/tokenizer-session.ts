import { tokenizerFailure } from "./tokenizer-failure.ts";
import type { OpenPort, PortProgram, TokenizerPort } from "./tokenizer-port.ts";
import type { Instance, TokenizerReply, TokenizerRequest } from "./tokenizer-server.ts";

/** How a tokenizer elsewhere is reached. */
export interface TokenizerSessionOptions extends PortProgram {
  readonly open: OpenPort;
  /** The text of each instance's document, asked for when the instance is first needed. */
  readonly documents: Readonly<Record<Instance, () => string>>;
  /** Longest wait for an answer, in milliseconds. Default none. */
  readonly deadlineMs?: number;
}

/** The tokenizer ended before it had answered. */
export class TokenizerEnded extends Error {
  override readonly name = "TokenizerEnded";
  /** Whether nothing else was being worked on: then it ended for this. */
  readonly wasAlone: boolean;

  constructor(why: Error, wasAlone: boolean) {
    super(why.message, { cause: why });
    this.wasAlone = wasAlone;
  }
}

interface Waiting {
  readonly resolve: (reply: TokenizerReply) => void;
  readonly reject: (error: Error) => void;
}

/** One life of a tokenizer in a thread or process of its own, and the requests that it has not answered yet. */
export class TokenizerSession {
  readonly #options: TokenizerSessionOptions;
  readonly #port: TokenizerPort;
  readonly #waiting = new Map<number, Waiting>();
  readonly #loading = new Map<Instance, Promise<unknown>>();
  readonly #loaded = new Set<Instance>();
  #nextId = 0;
  #ended: Error | undefined;

  constructor(options: TokenizerSessionOptions) {
    const { open, serve, library } = options;
    this.#options = options;
    this.#port = open(
      { serve, library },
      {
        onReply: (reply) => this.#settle(reply),
        onEnd: (why) => this.#forget(why, this.#waiting.size === 1),
      },
    );
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  isLoaded(instance: Instance): boolean {
    return this.#loaded.has(instance);
  }

  /**
   * @throws RolloutError `internal/tokenizer` where the library refuses it.
   * @throws TokenizerEnded
   */
  async load(instance: Instance): Promise<void> {
    const loading =
      this.#loading.get(instance) ??
      this.request({ type: "load", instance, text: this.#options.documents[instance]() });
    this.#loading.set(instance, loading);
    await loading;
    this.#loaded.add(instance);
  }

  /**
   * @throws RolloutError `internal/tokenizer` where the library cannot answer, or not in time.
   * @throws TokenizerEnded
   */
  request(request: TokenizerRequest): Promise<TokenizerReply> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(new TokenizerEnded(this.#ended, false));
        return;
      }
      const id = this.#nextId++;
      const timer = this.#startDeadline(id);
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        if (this.#waiting.size === 0) this.#port.setBusy(false);
      };
      this.#waiting.set(id, {
        resolve: (reply) => (settle(), resolve(reply)),
        reject: (error) => (settle(), reject(error)),
      });
      this.#port.setBusy(true);
      this.#port.post({ ...request, id });
    });
  }

  /** Ends it, which is the fault of nothing that it has not answered yet. */
  async end(why: Error): Promise<void> {
    this.#forget(why, false);
    await this.#port.end();
  }

  #startDeadline(id: number): NodeJS.Timeout | undefined {
    const { deadlineMs } = this.#options;
    if (deadlineMs === undefined) return undefined;
    return setTimeout(() => {
      // It is known which of them took too long: the others did not.
      const why = new Error(`it gave no answer within ${deadlineMs} ms`);
      this.#waiting.get(id)?.reject(tokenizerFailure(why));
      void this.end(why);
    }, deadlineMs);
  }

  #settle(reply: TokenizerReply): void {
    const waiting = this.#waiting.get(reply.id);
    if (reply.problem === undefined) waiting?.resolve(reply);
    else waiting?.reject(tokenizerFailure(new Error(reply.problem)));
  }

  #forget(why: Error, wasAlone: boolean): void {
    this.#ended ??= why;
    for (const { reject } of this.#waiting.values()) reject(new TokenizerEnded(why, wasAlone));
  }
}
