import { customInput } from "../call-form.ts";
import type { ClientError } from "../client-error.ts";
import type {
  Reply,
  ReplyEvent,
  ReplyFinish,
  ReplyPart,
  ReplyStart,
  ReplyToken,
  ReplyUsage,
} from "../conversation.ts";
import { sseComment, sseEvent, type ReplyEnd, type StreamWriter } from "./dialect.ts";
import { openAiError } from "./openai-error.ts";
import { encodeLogprobs } from "./token-logprobs.ts";

type CallPart = Extract<ReplyPart, { readonly type: "call" }>;

/** Encodes a finished reply for Chat Completions. */
export function encodeChatReply({ start, parts, finish, usage, tokens }: Reply): object {
  const text = joined(parts, "text");
  const reasoning = joined(parts, "reasoning");
  const calls = parts.filter((part) => part.type === "call");
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...callMembers(calls),
  };
  return {
    ...envelope(start, "chat.completion"),
    choices: [
      {
        index: 0,
        message,
        logprobs: tokens === undefined ? null : logprobsOf(tokens),
        finish_reason: finishReason(finish, parts),
      },
    ],
    usage: encodeUsage(usage),
  };
}

function joined(parts: readonly ReplyPart[], type: "text" | "reasoning"): string {
  return parts.flatMap((part) => (part.type === type ? [part.text] : [])).join("");
}

function envelope({ id, createdAtMs, requested }: ReplyStart, object: string) {
  return { id, object, created: Math.floor(createdAtMs / 1000), model: requested.model };
}

/** Returns the members for a message's calls. `function_call` holds one call. */
function callMembers(calls: readonly CallPart[]): object {
  const [first] = calls;
  if (first === undefined) return {};
  return isFunctionCall(first)
    ? { function_call: functionOf(first) }
    : { tool_calls: calls.map((call) => toolCall(call, call.text)) };
}

/** Encodes a call with the given part of its arguments. */
function toolCall(call: CallPart, text: string) {
  const { callId: id, name, form } = call;
  if (form !== "custom") return { id, type: "function", function: { name, arguments: text } };
  return { id, type: "custom", custom: { name, input: text === "" ? "" : customInput(text) } };
}

function functionOf({ name, text }: CallPart) {
  return { name, arguments: text };
}

function isFunctionCall({ form }: CallPart): boolean {
  return form === "function-call";
}

function finishReason({ type }: ReplyFinish, parts: readonly ReplyPart[]): string {
  if (type !== "calls") return type === "length" ? "length" : "stop";
  return parts.some((part) => part.type === "call" && isFunctionCall(part))
    ? "function_call"
    : "tool_calls";
}

function encodeUsage({ promptTokenCount, cachedTokenCount, sampledTokenCount }: ReplyUsage) {
  return {
    prompt_tokens: promptTokenCount,
    completion_tokens: sampledTokenCount,
    total_tokens: promptTokenCount + sampledTokenCount,
    prompt_tokens_details: { cached_tokens: cachedTokenCount },
  };
}

function logprobsOf(tokens: readonly ReplyToken[]) {
  return { content: encodeLogprobs(tokens), refusal: null };
}

/**
 * Writes a reply as chunks of Chat Completions. The first chunk of a call has its id, type, index
 * and name, because clients need all four.
 */
export class ChatWriter implements StreamWriter {
  readonly #start: ReplyStart;
  /** Indexes among the calls, by the index among the parts. */
  readonly #callIndexes = new Map<number, number>();
  readonly #open: ReplyPart[] = [];

  constructor(start: ReplyStart) {
    this.#start = start;
  }

  start(): string {
    return this.#chunk({ role: "assistant", content: "" });
  }

  write(event: ReplyEvent): string {
    switch (event.type) {
      case "part-start":
        return this.#startPart(event.index, event.part);
      case "part-delta":
        return this.#growPart(event.index, event.text);
      case "part-end":
        return this.#endPart(event.index, event.part);
    }
  }

  end({ finish, usage, tokens }: ReplyEnd): string {
    const { requested } = this.#start;
    const logprobs = tokens === undefined ? {} : { logprobs: logprobsOf(tokens) };
    const ending = this.#chunk(
      {},
      { ...logprobs, finish_reason: finishReason(finish, this.#open) },
    );
    const usageChunk = requested.includesUsage
      ? sseEvent({ ...this.#envelope(), choices: [], usage: encodeUsage(usage) })
      : "";
    return `${ending}${usageChunk}data: [DONE]\n\n`;
  }

  fail(error: ClientError): string {
    return sseEvent(openAiError(error));
  }

  keepAlive(): string {
    return sseComment;
  }

  #startPart(index: number, part: ReplyPart): string {
    this.#open[index] = part;
    if (part.type !== "call") return "";
    if (isFunctionCall(part)) return this.#chunk({ function_call: functionOf(part) });
    const callIndex = this.#callIndexes.size;
    this.#callIndexes.set(index, callIndex);
    return this.#chunk({ tool_calls: [{ index: callIndex, ...toolCall(part, "") }] });
  }

  #growPart(index: number, text: string): string {
    const part = this.#open[index]!;
    switch (part.type) {
      case "text":
        return this.#chunk({ content: text });
      case "reasoning":
        return this.#chunk({ reasoning_content: text });
      case "call":
        return this.#growCall(index, part, text);
    }
  }

  #growCall(index: number, part: CallPart, text: string): string {
    if (isFunctionCall(part)) return this.#chunk({ function_call: { arguments: text } });
    // The input of a custom tool is known only when its arguments are complete.
    if (part.form === "custom") return "";
    return this.#callChunk(index, { function: { arguments: text } });
  }

  #endPart(index: number, part: ReplyPart): string {
    if (part.type !== "call" || part.form !== "custom") return "";
    return this.#callChunk(index, { custom: { input: customInput(part.text) } });
  }

  #callChunk(index: number, change: object): string {
    return this.#chunk({ tool_calls: [{ index: this.#callIndexes.get(index), ...change }] });
  }

  #envelope() {
    return envelope(this.#start, "chat.completion.chunk");
  }

  #chunk(delta: object, more: object = {}): string {
    const choice = { index: 0, delta, logprobs: null, finish_reason: null, ...more };
    return sseEvent({ ...this.#envelope(), choices: [choice] });
  }
}
