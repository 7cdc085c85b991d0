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
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => toolCall(call, call.text)) }),
  };
  return {
    ...envelope(start, "chat.completion"),
    choices: [
      {
        index: 0,
        message,
        logprobs: tokens === undefined ? null : logprobsOf(tokens),
        finish_reason: finishReason(finish),
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

function toolCall({ callId: id, name }: CallPart, text: string) {
  return { id, type: "function", function: { name, arguments: text } };
}

function finishReason({ type }: ReplyFinish): string {
  return type === "calls" ? "tool_calls" : type === "length" ? "length" : "stop";
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
  const content = tokens.map(({ text: token, logprob }) => {
    return { token, logprob, bytes: [...Buffer.from(token)], top_logprobs: [] };
  });
  return { content, refusal: null };
}

/**
 * Writes a reply as chunks of Chat Completions. Each call begins with its id, its type, its place and
 * its name: clients need all four.
 */
export class ChatWriter implements StreamWriter {
  readonly #start: ReplyStart;
  /** Places of calls among the calls, by their place among the parts. */
  readonly #callIndexes = new Map<number, number>();
  readonly #kinds: ReplyPart["type"][] = [];

  constructor(start: ReplyStart) {
    this.#start = start;
  }

  start(): string {
    return this.#chunk({ role: "assistant", content: "" });
  }

  write(event: ReplyEvent): string {
    if (event.type === "part-start") return this.#begin(event.index, event.part);
    if (event.type === "part-end") return "";
    const { index, text } = event;
    const kind = this.#kinds[index];
    if (kind === "text") return this.#chunk({ content: text });
    if (kind === "reasoning") return this.#chunk({ reasoning_content: text });
    const place = this.#callIndexes.get(index);
    return this.#chunk({ tool_calls: [{ index: place, function: { arguments: text } }] });
  }

  end({ finish, usage, tokens }: ReplyEnd): string {
    const { asked } = this.#start;
    const logprobs = tokens === undefined ? {} : { logprobs: logprobsOf(tokens) };
    const ending = this.#chunk({}, { ...logprobs, finish_reason: finishReason(finish) });
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
    this.#kinds[index] = part.type;
    if (part.type !== "call") return "";
    const place = this.#callIndexes.size;
    this.#callIndexes.set(index, place);
    return this.#chunk({ tool_calls: [{ index: place, ...toolCall(part, "") }] });
  }

  #envelope() {
    return envelope(this.#start, "chat.completion.chunk");
  }

  #chunk(delta: object, more: object = {}): string {
    const choice = { index: 0, delta, logprobs: null, finish_reason: null, ...more };
    return sseEvent({ ...this.#envelope(), choices: [choice] });
  }
}
