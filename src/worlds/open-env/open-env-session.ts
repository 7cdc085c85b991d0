import { WebSocket } from "ws";
import { RolloutError, describeError } from "../../errors.ts";
import { shownUrl } from "../../secrets/find-secrets.ts";
import { withDeadline } from "../../async/deadline.ts";
import { decodeText } from "../../text/decode-text.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { writeJsonWith } from "../../environment/plain-text.ts";
import { parseExactJson, writeExactJson, writtenText } from "../../json/exact-json.ts";
import { shorten } from "../../secrets/shorten.ts";

/** A server's reply to a reset or a step. */
export interface OpenEnvResult {
  readonly observation: Readonly<Record<string, unknown>>;
  readonly reward?: number | boolean | null;
  readonly done?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
}

/** The address of an OpenEnv server. */
export interface OpenEnvPlace {
  /** The server's URL, such as `http://127.0.0.1:8000`. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown if the server refuses an action as invalid. */
export class RefusedAction extends Error {
  override readonly name = "RefusedAction";
}

/** Maximum size of a message, in bytes. */
const maxMessageBytes = 64 * 2 ** 20;

/** Maximum length of a quotation in an error message, in characters. */
const quotedLength = 500;

/**
 * A session with an OpenEnv server: one WebSocket, with its own world on the server.
 *
 * **Source:** PyPI openenv 0.10.0, core/env_server/http_server.py (`/ws`) and types.py (`WS…`).
 */
export class OpenEnvSession implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #place: string;
  #waiting: { resolve(message: unknown): void; reject(error: unknown): void } | undefined;
  /** The reason why no more messages can arrive. `undefined` while the session is open. */
  #ended: Error | undefined;

  private constructor(socket: WebSocket, place: string) {
    this.#socket = socket;
    this.#place = place;
    socket.on("error", (error) => this.#end(describeError(error)));
    socket.on("message", (data: Buffer) => this.#take(data));
    socket.on("close", (code) => this.#end(`it closed the connection (${code})`));
  }

  /**
   * Connects to the server.
   *
   * @throws RolloutError `environment/unreachable`.
   */
  static async open(
    { url, headers = {} }: OpenEnvPlace,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<OpenEnvSession> {
    const address = new URL(url);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.pathname = `${address.pathname.replace(/\/+$/, "")}/ws`;
    const socket = new WebSocket(address, { headers, maxPayload: maxMessageBytes });
    const session = new OpenEnvSession(socket, shownUrl(url));
    const opened = new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    try {
      await withDeadline(async () => await opened, {
        ms: timeoutMs,
        signal,
        onLate: () => {
          throw new Error(`no answer within ${timeoutMs} ms`);
        },
      });
      return session;
    } catch (error) {
      opened.catch(() => undefined);
      socket.terminate();
      signal.throwIfAborted();
      const message = `Cannot reach OpenEnv server ${shownUrl(url)}: ${describeError(error)}`;
      throw new RolloutError("environment/unreachable", message, { cause: error, retryable: true });
    }
  }

  /** Starts an episode. Throws as `ask()` does. */
  async reset(data: object, options: AskOptions): Promise<OpenEnvResult> {
    return this.#result(await this.#ask({ type: "reset", data }, options));
  }

  /**
   * Performs an action.
   * @throws RefusedAction if the server refuses it as invalid.
   */
  async step(data: object, options: AskOptions): Promise<OpenEnvResult> {
    return this.#result(await this.#ask({ type: "step", data }, options));
  }

  #result(value: unknown): OpenEnvResult {
    const result = value as Partial<OpenEnvResult> | null;
    const { observation, reward, done } = result ?? {};
    const isRight =
      typeof observation === "object" &&
      observation !== null &&
      !Array.isArray(observation) &&
      (reward === undefined || reward === null || /^(?:number|boolean)$/.test(typeof reward)) &&
      (done === undefined || typeof done === "boolean");
    if (isRight && (typeof reward !== "number" || Number.isFinite(reward))) {
      return result as OpenEnvResult;
    }
    throw this.#failure(
      "environment/bad-step",
      `it answered ${brief(value)}, expected {"observation": {…}, "reward": …, "done": …}`,
    );
  }

  async #ask(message: object, { timeoutMs, signal }: AskOptions): Promise<unknown> {
    if (this.#ended !== undefined) throw this.#ended;
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    // The caller may have stopped waiting.
    answered.catch(() => undefined);
    this.#socket.send(writeJsonWith(message, writtenText));
    try {
      return await withDeadline(async () => await answered, {
        ms: timeoutMs,
        signal,
        onLate: () => {
          throw this.#failure("environment/timeout", `no answer within ${timeoutMs} ms`);
        },
      });
    } catch (error) {
      // The next request would get this request's late reply.
      if (!(error instanceof RefusedAction)) this.#socket.terminate();
      throw error;
    }
  }

  /**
   * Handles a message of any form. Never throws, because an event handler that throws ends the
   * process.
   */
  #take(data: Buffer): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    const answer = this.#read(data);
    if (!(answer instanceof Error)) waiting?.resolve(answer.body);
    else if (waiting !== undefined) waiting.reject(answer);
    // No request is pending: the server explains why it refuses the session, and then closes it.
    else this.#ended ??= answer;
  }

  /**
   * Reads a message of the server.
   *
   * @returns the content of an observation, or an error for any other message.
   */
  #read(data: Buffer): { readonly body: unknown } | Error {
    try {
      const message = parseExactJson(decodeText(data));
      const { type, data: body } = (message ?? {}) as { type?: unknown; data?: unknown };
      return type === "observation" ? { body } : this.#describe(type, body);
    } catch (error) {
      return this.#failure(
        "environment/bad-step",
        `it sent what it should not (${describeError(error)})`,
      );
    }
  }

  #describe(type: unknown, body: unknown): Error {
    if (type !== "error") {
      return this.#failure("environment/bad-step", `it sent a message of type ${brief(type)}`);
    }
    const { code, message, detail, errors } = (
      typeof body === "string" ? { message: body } : (body ?? {})
    ) as {
      readonly code?: unknown;
      readonly message?: unknown;
      /** The member in which FastAPI reports errors. */
      readonly detail?: unknown;
      readonly errors?: unknown;
    };
    const said = brief(message ?? detail);
    if (code === "VALIDATION_ERROR") return new RefusedAction(describeProblems(errors) ?? said);
    if (code === "CAPACITY_REACHED") {
      const why = `it has no room for another session (${said}), expected fewer episodes at once`;
      return this.#failure("environment/unreachable", `${why} (concurrency), or more room there`);
    }
    return this.#failure(
      "environment/exception",
      `it answered ${brief(code ?? "an error")}: ${said}`,
    );
  }

  #failure(code: `environment/${string}`, why: string): RolloutError {
    const message = `Cannot use OpenEnv server ${this.#place}: ${why}`;
    return new RolloutError(code, message, { retryable: code !== "environment/bad-step" });
  }

  #end(why: string): void {
    this.#ended ??= this.#failure("environment/unreachable", why);
    this.#waiting?.reject(this.#ended);
    this.#waiting = undefined;
  }

  /** Ends the session. The server then removes its world. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end("the session is over");
    if (this.#socket.readyState !== WebSocket.OPEN) {
      this.#socket.terminate();
      return;
    }
    this.#socket.send(JSON.stringify({ type: "close" }));
    // Stops waiting if the server does not close within a second.
    const closed = new Promise((resolve) => this.#socket.once("close", resolve));
    const timer = setTimeout(() => this.#socket.terminate(), 1_000);
    this.#socket.close();
    await closed;
    clearTimeout(timer);
  }
}

/** The longest time for a reply, in milliseconds, and a signal that cancels the wait. */
interface AskOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Describes pydantic's errors for the model. */
function describeProblems(errors: unknown): string | undefined {
  if (!Array.isArray(errors) || errors.length === 0) return undefined;
  const lines = errors.map((problem: unknown) => {
    const { loc, msg } = (problem ?? {}) as { readonly loc?: unknown; readonly msg?: unknown };
    const place = Array.isArray(loc) ? loc.map(brief).join(".") : "";
    return `${place === "" ? "" : `${place}: `}${brief(msg)}`;
  });
  return lines.slice(0, 10).join("; ");
}

function brief(value: unknown): string {
  const whole =
    typeof value === "string" ? value : value == null ? "nothing" : writeExactJson(value);
  // Cut after redaction, because a part of a key would not be recognised.
  return shorten(new Redactor().text(whole), quotedLength);
}
