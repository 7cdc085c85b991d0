import { RolloutError } from "../../errors.ts";
import type { Party } from "../../errors.ts";
import { type Clock, createClock } from "../../async/clock.ts";
import { createCallQueue } from "./call-queue.ts";
import type { BudgetMeter, ChatBudget, ChatPrices, ChatSpending } from "./chat-budget.ts";
import { createBudgetMeter } from "./chat-budget.ts";
import type { ChatEndpoint, ChatSource } from "./chat-endpoint.ts";
import { chatEndpointSource } from "./chat-endpoint.ts";
import { ChatFailure, classifyChatError } from "../../engine/chat/chat-failure.ts";
import type { ChatModel, ChatReply, ChatRequest } from "./chat-model.ts";
import type { ChatRetryOptions } from "../../engine/chat/chat-retry.ts";
import { retryChatCall } from "../../engine/chat/chat-retry.ts";
import type { AiSdkLanguageModel, LanguageModelAnswer } from "./language-model-call.ts";
import { callLanguageModel } from "./language-model-call.ts";

/** Settings of a chat model's calls. Every field has a default. */
export interface ChatCallOptions extends Partial<ChatRetryOptions> {
  /** Maximum number of calls in progress, including pauses between attempts. Default 32. */
  readonly maxConcurrent?: number;
  /** Maximum number of waiting calls. Any further call fails as `user/overloaded`. Default 4,096. */
  readonly maxWaiting?: number;
  /**
   * Time limit of a started call in milliseconds, including all attempts and pauses. Default: no
   * limit, because the caller's signal limits the call, such as an episode's `userTimeoutMs`.
   */
  readonly timeoutMs?: number;
  readonly budget?: ChatBudget;
  readonly prices?: ChatPrices;
  /** The party to which failures are attributed. Default `user`. */
  readonly party?: Extract<Party, "user" | "grader">;
  /** Returns the time in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number;
  /** Waits for a time. Deadlines use this function too. Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
  /** Returns a number in [0, 1) that spreads retries. Default `Math.random`. */
  readonly random?: () => number;
}

/**
 * Defaults of `ChatCallOptions`. Pauses of up to 1, 2 and 4 seconds cover a short disturbance, not
 * an outage.
 */
const chatCallDefaults = {
  maxConcurrent: 32,
  maxWaiting: 4096,
  timeoutMs: Infinity,
  maxAttempts: 4,
  firstPauseMs: 1000,
  maxPauseMs: 30_000,
} as const;

/** A chat model that counts its spending. */
export interface MeteredChatModel extends ChatModel {
  /** Returns the spending of all calls, including failed attempts. */
  spent(): ChatSpending;
  /** Closes the connections. Calls in progress fail. */
  close(): Promise<void>;
}

/**
 * Creates a chat model from a model of the AI SDK, with a queue, retries, a deadline, a budget and
 * typed failures.
 */
export function aiSdkChatModel(
  options: ChatCallOptions & { readonly model: AiSdkLanguageModel },
): MeteredChatModel {
  const { model } = options;
  return meteredChatModel(
    {
      name: model.modelId,
      call: (request, { signal }) => callLanguageModel(model, request, { signal }),
      close: async () => undefined,
    },
    options,
  );
}

/**
 * Creates a chat model for an OpenAI-compatible server. See `aiSdkChatModel()`.
 *
 * @throws UsageError for an invalid URL or a key that is missing in the environment.
 */
export function endpointChatModel(
  options: ChatCallOptions & {
    readonly endpoint: ChatEndpoint;
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): MeteredChatModel {
  const { endpoint, env, maxConcurrent = chatCallDefaults.maxConcurrent } = options;
  return meteredChatModel(chatEndpointSource(endpoint, { env, maxConcurrent }), options);
}

function meteredChatModel(source: ChatSource, options: ChatCallOptions): MeteredChatModel {
  const { party = "user", now = Date.now, random = Math.random } = options;
  const clock = createClock({ sleep: options.sleep });
  const settings = { ...chatCallDefaults, ...options };
  const { maxConcurrent, maxWaiting, budget, prices } = settings;
  const meter = createBudgetMeter({ budget, prices });
  const queue = createCallQueue({
    maxConcurrent,
    maxWaiting,
    onFull: () =>
      new ChatFailure("overloaded", `${maxWaiting} calls are already waiting`, {
        retryable: true,
      }),
  });
  const toRolloutError = (failure: ChatFailure): RolloutError =>
    new RolloutError(
      `${party}/${failure.kind}`,
      `Cannot get a reply from ${source.name}: ${failure.message}, ` + expectedBy(failure),
      { cause: failure.cause, retryable: failure.retryable },
    );
  return {
    name: source.name,
    async complete(request, { signal }) {
      const call = { ...settings, request, source, meter, now, clock, random, signal };
      try {
        // A call keeps its place in the queue during a pause, so that an overloaded server receives
        // fewer requests.
        return await queue.run(() => completeWithRetries(call), { signal });
      } catch (error) {
        throw error instanceof ChatFailure ? toRolloutError(error) : error;
      }
    },
    spent: () => meter.spent(),
    close: () => source.close(),
  };
}

interface ChatCall extends ChatRetryOptions {
  readonly request: ChatRequest;
  readonly source: ChatSource;
  readonly meter: BudgetMeter;
  readonly now: () => number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

async function completeWithRetries(call: ChatCall): Promise<ChatReply> {
  let inputTokenCount = 0;
  let outputTokenCount = 0;
  let costUsd: number | undefined;
  return await retryChatCall(async (signal) => {
    const { text, instead, finishReason, usage } = await attempt({ ...call, signal });
    const price = call.meter.add(usage);
    inputTokenCount += usage?.inputTokenCount ?? 0;
    outputTokenCount += usage?.outputTokenCount ?? 0;
    if (price !== undefined) costUsd = (costUsd ?? 0) + price;
    if (text.trim() === "") {
      const problem =
        instead === undefined ? "is empty" : `has no text but ${nameOfInstead[instead]}`;
      throw new ChatFailure("empty-reply", `the reply ${problem} (it ended by ${finishReason})`, {
        // After reasoning up to the limit, another attempt would end the same way.
        retryable: finishReason !== "length",
      });
    }
    return {
      text,
      inputTokenCount,
      outputTokenCount,
      ...(costUsd !== undefined && { costUsd }),
      finishReason,
    };
  }, call);
}

const nameOfInstead = { reasoning: "reasoning", refusal: "a refusal" } as const;

async function attempt(call: ChatCall): Promise<LanguageModelAnswer> {
  const { request, source, meter, now, signal } = call;
  meter.assertLeft();
  try {
    return await source.call(request, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw classifyChatError(error, { now });
  }
}

function expectedBy({ kind }: ChatFailure): string {
  switch (kind) {
    case "unauthorized":
      return "expected `apiKeyEnv` to name a variable with a valid key";
    case "budget":
      return "expected calls within the budget";
    case "bad-request":
      return "expected the server to accept the request";
    case "unreachable":
      return "expected a server at its URL";
    default:
      return "expected a reply with text";
  }
}
