import { RolloutError } from "../../errors.ts";
import type { Party } from "../../errors.ts";
import { type Clock, createClock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { createCallQueue } from "./call-queue.ts";
import type { BudgetMeter, ChatBudget, ChatPrices, ChatSpending } from "./chat-budget.ts";
import { createBudgetMeter } from "./chat-budget.ts";
import type { ChatEndpoint, ChatSource } from "./chat-endpoint.ts";
import { chatEndpointSource } from "./chat-endpoint.ts";
import { ChatFailure, classifyChatError } from "./chat-failure.ts";
import type { ChatModel, ChatReply, ChatRequest } from "./chat-model.ts";
import type { ChatRetryOptions } from "./chat-retry.ts";
import { retryChatCall } from "./chat-retry.ts";
import type { AiSdkLanguageModel, LanguageModelAnswer } from "./language-model-call.ts";
import { callLanguageModel } from "./language-model-call.ts";

/** How a chat model's calls are made, whichever model answers. Every field has a default. */
export interface ChatCallOptions extends Partial<ChatRetryOptions> {
  /** Calls in progress at once, pauses between attempts included. Default 32. */
  readonly maxConcurrent?: number;
  /** Calls waiting for their turn; one more fails as `user/overloaded`. Default 4,096. */
  readonly maxWaiting?: number;
  /**
   * Longest wait for a reply in milliseconds once its turn has come: for all attempts and the pauses
   * between them. Default: none of its own, because the caller's signal is the limit, as an episode's
   * `userTimeoutMs` is for all that one line of the user's takes, its turn included.
   */
  readonly timeoutMs?: number;
  readonly budget?: ChatBudget;
  readonly prices?: ChatPrices;
  /** Who a failure is attributed to. Default `user`. */
  readonly party?: Extract<Party, "user" | "grader">;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
  /** Default: the machine's timers. Deadlines are kept with it too. */
  readonly sleep?: Clock["sleep"];
  /** A number in [0, 1), for spreading retries. Default `Math.random`. */
  readonly random?: () => number;
}

/** Defaults of `ChatCallOptions`: pauses of up to 1, 2 and 4 s ride out a hiccup, no outage. */
const chatCallDefaults = {
  maxConcurrent: 32,
  maxWaiting: 4096,
  timeoutMs: Infinity,
  maxAttempts: 4,
  firstPauseMs: 1000,
  maxPauseMs: 30_000,
} as const;

/** A chat model with what it has cost so far. */
export interface MeteredChatModel extends ChatModel {
  /** What all calls together took, failed attempts included. */
  spent(): ChatSpending;
  /** Drops its connections; calls under way fail. */
  close(): Promise<void>;
}

/**
 * A chat model over any model of the AI SDK: bounded, retried by kind of error, with a deadline, a
 * budget and typed failures.
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
 * A chat model over an OpenAI-compatible server; see `aiSdkChatModel()`.
 *
 * @throws UsageError for a URL that is none and for a key that is not in the environment.
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
      new ChatFailure("overloaded", `${maxWaiting} calls wait for their turn already`, {
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
        // A call keeps its turn while it pauses: an overloaded server is asked less, not more.
        return await queue.run(() => completeInTime(call), { signal });
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

/** A model that ignores its signal is not waited for: its turn goes to the next call. */
async function completeInTime(call: ChatCall): Promise<ChatReply> {
  const { timeoutMs: ms, clock, signal } = call;
  return await withDeadline((inner) => completeWithRetries({ ...call, signal: inner }), {
    ms,
    signal,
    clock,
    onLate: () => {
      throw new ChatFailure("timeout", `no reply within ${ms} ms`, { retryable: true });
    },
  });
}

async function completeWithRetries(call: ChatCall): Promise<ChatReply> {
  let inputTokenCount = 0;
  let outputTokenCount = 0;
  let costUsd: number | undefined;
  return await retryChatCall(async () => {
    const { text, instead, finishReason, usage } = await attempt(call);
    const price = call.meter.add(usage);
    inputTokenCount += usage?.inputTokenCount ?? 0;
    outputTokenCount += usage?.outputTokenCount ?? 0;
    if (price !== undefined) costUsd = (costUsd ?? 0) + price;
    if (text.trim() === "") {
      const is = instead === undefined ? "is empty" : `has no text but ${nameOfInstead[instead]}`;
      throw new ChatFailure("empty-reply", `the reply ${is} (it ended by ${finishReason})`, {
        // A reply that thought up to its limit would do so again.
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
