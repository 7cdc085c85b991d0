import { systemClock } from "../../async/clock.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import type { Engine, EngineDescription } from "../engine.ts";
import { writeChatBody, requireFreeMembers, type LimitMember } from "./chat-body.ts";
import { createChatConnection, type ChatConnection } from "./chat-connection.ts";
import { chatRetryDefaults, defaultTurnMs, type ChatEngineOptions } from "./chat-engine-options.ts";
import { ChatFailure, classifyChatError } from "./chat-failure.ts";
import { retryChatCall } from "./chat-retry.ts";
import type { ChatTurn, ChatTurnRequest } from "./chat-turn.ts";
import { describeServedModel } from "./describe-served-model.ts";
import { postCompletion } from "./post-completion.ts";
import { readChatTurn } from "./read-chat-turn.ts";
import { toEngineFailure } from "./to-engine-failure.ts";

/** An engine that takes and returns messages. */
export interface ChatEngine extends Engine {
  readonly kind: "chat";
  readonly complete: NonNullable<Engine["complete"]>;
}

/** Maximum number of connections. The number of concurrent episodes limits the calls. */
const maxConnections = 1024;

/**
 * Creates an engine for a server that offers only Chat Completions, without a request. The engine returns no ids, so
 * its episodes have messages and a reward, and no training rows.
 *
 * @throws UsageError for an invalid URL, a missing key, or further members that the engine writes itself.
 */
export function createChatEngine(options: ChatEngineOptions): ChatEngine {
  const { model, env = process.env, body = {} } = options;
  requireFreeMembers(body);
  const connection = createChatConnection(options, { env, maxConnections });
  const calls = new ChatCalls(connection, options);
  let isClosed = false;
  return {
    kind: "chat",
    complete: async (request, { signal = new AbortController().signal } = {}) => {
      if (isClosed) throw new UsageError("Cannot ask for a turn: the engine is closed");
      try {
        return await calls.complete(request, signal);
      } catch (error) {
        if (!(error instanceof ChatFailure)) throw error;
        throw toEngineFailure(error, `get turn ${request.requestId} from ${model}`);
      }
    },
    generate: () =>
      Promise.reject(
        new RolloutError(
          "engine/bad-request",
          `Cannot sample token ids: ${model} is asked over Chat Completions, which returns messages without ids, ` +
            "expected complete(), or an engine with ids",
        ),
      ),
    describe: async ({
      signal = new AbortController().signal,
    } = {}): Promise<EngineDescription> => {
      const served = await describeServedModel(connection, { model, signal });
      return { kind: "chat", url: connection.transport.url, model, ...served };
    },
    async close() {
      isClosed = true;
      await connection.transport.close();
    },
  };
}

/** Calls a server for turns, with retries and a deadline. */
class ChatCalls {
  readonly #connection: ChatConnection;
  readonly #options: ChatEngineOptions;
  #limitMember: LimitMember = "max_tokens";

  constructor(connection: ChatConnection, options: ChatEngineOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /**
   * Requests a turn, and repeats the request after a failure that may pass.
   *
   * @throws ChatFailure, and the signal's reason if it is aborted.
   */
  async complete(request: ChatTurnRequest, signal: AbortSignal): Promise<ChatTurn> {
    const {
      turnMs: timeoutMs = defaultTurnMs,
      clock = systemClock,
      random = Math.random,
    } = this.#options;
    return await retryChatCall((inner) => this.#attempt(request, inner), {
      ...chatRetryDefaults,
      ...this.#options.retry,
      timeoutMs,
      clock,
      random,
      signal,
    });
  }

  async #attempt(request: ChatTurnRequest, signal: AbortSignal): Promise<ChatTurn> {
    const limitMember = this.#limitMember;
    try {
      return await this.#post(request, signal);
    } catch (error) {
      signal.throwIfAborted();
      const failure = classifyChatError(error, { now: Date.now });
      if (!wantsOtherLimit(failure, limitMember)) throw failure;
      this.#limitMember = "max_completion_tokens";
      return await this.#attempt(request, signal);
    }
  }

  async #post(request: ChatTurnRequest, signal: AbortSignal): Promise<ChatTurn> {
    const { model, body = {}, returnedMembers = [] } = this.#options;
    const limitMember = this.#limitMember;
    const text = writeChatBody(request, { model, limitMember, body, returnedMembers });
    return readChatTurn(await postCompletion(this.#connection, text, { signal }));
  }
}

/** True if the server refused the older name of the limit and asks for the newer one. */
function wantsOtherLimit({ kind, message }: ChatFailure, sent: LimitMember): boolean {
  return (
    kind === "bad-request" && sent === "max_tokens" && message.includes("max_completion_tokens")
  );
}
