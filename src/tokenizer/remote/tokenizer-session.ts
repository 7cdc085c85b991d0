import { tokenizerFailure } from "./tokenizer-failure.ts";
import type { OpenPort, PortProgram, TokenizerPort } from "./tokenizer-port.ts";
import type { Instance, TokenizerReply, TokenizerRequest } from "./tokenizer-server.ts";

/** Settings of a session. */
export interface TokenizerSessionOptions extends PortProgram {
  readonly open: OpenPort;
  /** Returns the text of each instance's document. Called when the instance is first needed. */
  readonly documents: Readonly<Record<Instance, () => string>>;
  /** Time limit for a reply, in milliseconds. Default: none. */
  readonly deadlineMs?: number;
}

/** The tokenizer ended before it replied. */
export class TokenizerEnded extends Error {
  override readonly name = "TokenizerEnded";
  /** True if no other request was pending, so that this one is the likely cause. */
  readonly wasAlone: boolean;

  constructor(reason: Error, wasAlone: boolean) {
    super(reason.message, { cause: reason });
    this.wasAlone = wasAlone;
  }
}

interface PendingReply {
  readonly resolve: (reply: TokenizerReply) => void;
  readonly reject: (error: Error) => void;
}

/** One run of a tokenizer in its own thread or process, with its pending requests. */
export class TokenizerSession {
  readonly #options: TokenizerSessionOptions;
  readonly #port: TokenizerPort;
  readonly #pending = new Map<number, PendingReply>();
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
        onEnd: (reason) => this.#rejectAll(reason, this.#pending.size === 1),
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
   * Loads an instance.
   *
   * @throws RolloutError `internal/tokenizer` if the library refuses it.
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
   * Sends a request.
   *
   * @throws RolloutError `internal/tokenizer` if the library fails or exceeds the time limit.
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
        this.#pending.delete(id);
        if (this.#pending.size === 0) this.#port.setBusy(false);
      };
      this.#pending.set(id, {
        resolve: (reply) => (settle(), resolve(reply)),
        reject: (error) => (settle(), reject(error)),
      });
      this.#port.setBusy(true);
      this.#port.post({ ...request, id });
    });
  }

  /** Ends the tokenizer. Pending requests are rejected, but none of them counts as the cause. */
  async end(reason: Error): Promise<void> {
    this.#rejectAll(reason, false);
    await this.#port.end();
  }

  #startDeadline(id: number): NodeJS.Timeout | undefined {
    const { deadlineMs } = this.#options;
    if (deadlineMs === undefined) return undefined;
    return setTimeout(() => {
      // Only this request exceeded its limit, so only it fails.
      const reason = new Error(`it gave no answer within ${deadlineMs} ms`);
      this.#pending.get(id)?.reject(tokenizerFailure(reason));
      void this.end(reason);
    }, deadlineMs);
  }

  #settle(reply: TokenizerReply): void {
    const pending = this.#pending.get(reply.id);
    if (reply.problem === undefined) pending?.resolve(reply);
    else pending?.reject(tokenizerFailure(new Error(reply.problem)));
  }

  #rejectAll(reason: Error, wasAlone: boolean): void {
    this.#ended ??= reason;
    for (const { reject } of this.#pending.values()) reject(new TokenizerEnded(reason, wasAlone));
  }
}
