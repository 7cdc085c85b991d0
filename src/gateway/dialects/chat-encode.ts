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

/** A finished reply as Chat Completions gives it. */
export function encodeChatReply({ start, parts, finish, usage, tokens }: Reply): object {
  const text = joined(parts, "text");
  const reasoning = joined(parts, "reasoning");
  const calls = parts.filter((part) => part.type === "call");
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...calledBy(calls),
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

function envelope({ id, createdAtMs, asked }: ReplyStart, object: string) {
  return { id, object, created: Math.floor(createdAtMs / 1000), model: asked.model };
}

/** The calls of a whole message. Older functions are called one at a time. */
function calledBy(calls: readonly CallPart[]): object {
  const [first] = calls;
  if (first === undefined) return {};
  return isOlder(first)
    ? { function_call: called(first) }
    : { tool_calls: calls.map((call) => toolCall(call, call.text)) };
}

/** A call with so much of its arguments. */
function toolCall(call: CallPart, text: string) {
  const { callId: id, name, form } = call;
  if (form !== "custom") return { id, type: "function", function: { name, arguments: text } };
  return { id, type: "custom", custom: { name, input: text === "" ? "" : customInput(text) } };
}

function called({ name, text }: CallPart) {
  return { name, arguments: text };
}

function isOlder({ form }: CallPart): boolean {
  return form === "function-call";
}

function finishReason({ type }: ReplyFinish, parts: readonly ReplyPart[]): string {
  if (type !== "calls") return type === "length" ? "length" : "stop";
  return parts.some((part) => part.type === "call" && isOlder(part))
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
 * Writes a reply as chunks of Chat Completions. Each call begins with its id, its type, its place and
 * its name: clients need all four.
 */
export class ChatWriter implements StreamWriter {
  readonly #start: ReplyStart;
  /** Places of calls among the calls, by their place among the parts. */
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
        return this.#begin(event.index, event.part);
      case "part-delta":
        return this.#grow(event.index, event.text);
      case "part-end":
        return this.#finish(event.index, event.part);
    }
  }

  end({ finish, usage, tokens }: ReplyEnd): string {
    const { asked } = this.#start;
    const logprobs = tokens === undefined ? {} : { logprobs: logprobsOf(tokens) };
    const ending = this.#chunk(
      {},
      { ...logprobs, finish_reason: finishReason(finish, this.#open) },
    );
    const sums = asked.includesUsage
      ? sseEvent({ ...this.#envelope(), choices: [], usage: encodeUsage(usage) })
      : "";
    return `${ending}${sums}data: [DONE]\n\n`;
  }

  fail(error: ClientError): string {
    return sseEvent(openAiError(error));
  }

  keepAlive(): string {
    return sseComment;
  }

  #begin(index: number, part: ReplyPart): string {
    this.#open[index] = part;
    if (part.type !== "call") return "";
    if (isOlder(part)) return this.#chunk({ function_call: called(part) });
    const place = this.#callIndexes.size;
    this.#callIndexes.set(index, place);
    return this.#chunk({ tool_calls: [{ index: place, ...toolCall(part, "") }] });
  }

  #grow(index: number, text: string): string {
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
    if (isOlder(part)) return this.#chunk({ function_call: { arguments: text } });
    // The text of a custom tool is known once all arguments are.
    if (part.form === "custom") return "";
    return this.#callChunk(index, { function: { arguments: text } });
  }

  #finish(index: number, part: ReplyPart): string {
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
