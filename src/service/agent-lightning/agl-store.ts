import { Readable } from "node:stream";
import { request } from "undici";
import { z } from "zod";
import { describeError } from "../../errors.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { plainReply, readReplyText } from "../../http/read-reply.ts";
import { encodeLine } from "../../run/disk/encode-line.ts";
import { Redactor } from "../../secrets/redactor.ts";

/** The address of agent-lightning's server, and the identity of this service there. */
interface AglStoreOptions {
  /** The server's URL, without `/api`. */
  readonly url: string;
  /** The server's `key`. Absent if it has none. */
  readonly key?: string;
  /**
   * The name of this service as a runner. It stays the same after a restart, and no other service
   * has it.
   */
  readonly attempt: string;
}

const rolloutSchema = z.object({
  rollout_id: z.string().min(1),
  input: z.unknown().optional(),
  is_train: z.boolean(),
  config: z.object({ timeout_seconds: z.number().nullish() }),
});

/** A rollout as the store returns it. Members that this code does not read are left out. */
export type AglRollout = z.infer<typeof rolloutSchema>;

const statusSchema = z.object({
  rollout: z.object({
    status: z.object({ state: z.string(), last_attempt_id: z.string().nullish() }),
  }),
});

/** A rollout's state in the store. */
export type AglState = "queuing" | "running" | "succeeded" | "failed";

/** One event of an attempt. */
export interface AglEvent {
  readonly event_type: string;
  readonly data: object;
}

/**
 * Thrown if the store fails to perform a call or sends an invalid reply. `status` is 0 if no reply
 * came.
 */
export class AglError extends Error {
  override readonly name = "AglError";
  readonly status: number;

  constructor(status: number, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.status = status;
  }
}

/** The timeout of a call, in milliseconds. */
const timeoutMs = 60_000;

/**
 * Calls agent-lightning's store.
 *
 * **Source:** microsoft/agent-lightning agentlightning/server/routes/{rollouts,events}.py, 1.0.2.
 */
export class AglStore {
  readonly #url: string;
  readonly #key: string | undefined;
  readonly #attempt: string;
  /** Removes the key from errors, because some servers and proxies repeat the request in them. */
  readonly #redactor: Redactor;

  constructor({ url, key, attempt }: AglStoreOptions) {
    this.#url = url.replace(/\/$/, "");
    this.#key = key;
    this.#attempt = attempt;
    this.#redactor = new Redactor(key === undefined ? [] : [key]);
    this.#redactor.learnUrl(url);
  }

  /** Returns rollouts that no runner has claimed, oldest first. */
  async queued(limit: number, signal: AbortSignal): Promise<readonly AglRollout[]> {
    const path = `/api/rollouts?state_in=queuing&limit=${limit}`;
    return await this.#read(path, z.array(rolloutSchema), signal);
  }

  /**
   * Returns true if the rollout runs as this service's attempt.
   * @throws AglError with the status 404 if the store no longer has it.
   */
  async isOurs(id: string, signal: AbortSignal): Promise<boolean> {
    const { rollout } = await this.#read(pathOf(id), statusSchema, signal);
    const { state, last_attempt_id: attempt } = rollout.status;
    return state === "running" && attempt === this.#attempt;
  }

  /** Claims a rollout. Returns false if another runner has it, or if it has ended. */
  async claim(id: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.move(id, { state: "running" }, signal);
      return true;
    } catch (error) {
      // An earlier try may have claimed the rollout although its reply was lost.
      if (isGone(error)) return error.status === 409 && (await this.isOurs(id, signal));
      throw error;
    }
  }

  /**
   * Changes the state of a rollout in agent-lightning's store.
   *
   * @throws AglError with the status 409 if the rollout's state does not allow the change.
   */
  async move(
    id: string,
    { state, problem }: { readonly state: Exclude<AglState, "queuing">; readonly problem?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const status = {
      state,
      last_attempt_id: this.#attempt,
      ...(problem !== undefined && { error_message: problem }),
    };
    await this.#call("PATCH", pathOf(id), { body: { status }, signal });
  }

  /**
   * Adds an event. An event that is sent twice is stored twice, and the store uses the last one.
   */
  async addEvent(id: string, event: AglEvent, signal: AbortSignal): Promise<void> {
    const path = `${pathOf(id)}/attempt/${encodeURIComponent(this.#attempt)}/events`;
    await this.#call("POST", path, { body: event, signal });
  }

  /** Sends a request and validates the reply. */
  async #read<Said>(path: string, schema: z.ZodType<Said>, signal: AbortSignal): Promise<Said> {
    const answer = schema.safeParse(await this.#call("GET", path, { signal }));
    if (answer.success) return answer.data;
    const [issue] = answer.error.issues;
    const place = issue?.path.join(".");
    throw new AglError(
      200,
      `GET ${path} answered something else than agent-lightning's store does` +
        `${place ? `, at ${place}` : ""}: ${issue?.message}; is the address right, and its version 1.0?`,
    );
  }

  async #call(
    method: "GET" | "POST" | "PATCH",
    path: string,
    { body, signal }: { readonly body?: object; readonly signal: AbortSignal },
  ): Promise<unknown> {
    let status = 0;
    // Routes take megabytes.
    const blocks = body && (await encodeLine(body)).blocks;
    try {
      const reply = await request(this.#url + path, {
        method,
        headers: {
          ...plainReply,
          ...(blocks && {
            "content-type": "application/json",
            "content-length": String(blocks.reduce((sum, { length }) => sum + length, 0)),
          }),
          ...(this.#key !== undefined && { authorization: `Bearer ${this.#key}` }),
        },
        ...(blocks && { body: Readable.from(blocks) }),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal,
      });
      status = reply.statusCode;
      const text = await readReplyText(reply);
      const answer = status < 300 ? parseJsonText(text) : undefined;
      if (answer !== undefined) return answer;
      // Cut after redaction, because a part of a key would not be recognised.
      const said = this.#redactor.text(text).slice(0, 200);
      throw new AglError(status, `${method} ${path} answered ${status}: ${said}`);
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof AglError) throw cause;
      const error = new AglError(status, `${method} ${path}: ${describeError(cause)}`, { cause });
      this.#redactor.error(error);
      throw error;
    }
  }
}

/** True if the store no longer has the rollout, or if its state differs from the expected one. */
export function isGone(error: unknown): error is AglError {
  return error instanceof AglError && (error.status === 404 || error.status === 409);
}

function pathOf(id: string): string {
  return `/api/rollouts/${encodeURIComponent(id)}`;
}
