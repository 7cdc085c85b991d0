import { customInput, isActionForm } from "../call-form.ts";
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
import { calledName, contentPart, itemFor, finishedItem } from "./responses-items.ts";
import { encodeLogprobs } from "./token-logprobs.ts";
import { tokensOfTexts } from "./tokens-of-texts.ts";

type CallPart = Extract<ReplyPart, { readonly type: "call" }>;

/** Encodes a finished reply for Responses. */
export function encodeResponsesReply({ start, parts, ...end }: Reply): object {
  return finished(start, parts, end);
}

function envelope({ id, createdAtMs, requested }: ReplyStart) {
  const defaults = {
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
  };
  return {
    id,
    object: "response",
    created_at: Math.floor(createdAtMs / 1000),
    status: "in_progress",
    error: null,
    incomplete_details: null,
    model: requested.model,
    ...defaults,
    ...requested.echo,
    output: [] as readonly object[],
    usage: null as object | null,
  };
}

function finished(
  start: ReplyStart,
  parts: readonly ReplyPart[],
  {
    finish,
    usage,
    tokens,
  }: {
    readonly finish: ReplyFinish;
    readonly usage: ReplyUsage;
    readonly tokens?: readonly ReplyToken[];
  },
): object {
  const isCut = finish.type === "length";
  const tokensByPart = tokens === undefined ? [] : tokensOfTexts(parts, tokens);
  return {
    ...envelope(start),
    status: isCut ? "incomplete" : "completed",
    ...(isCut && { incomplete_details: { reason: "max_output_tokens" } }),
    output: parts.map((part, index) => finishedItem(start, part, tokensByPart[index])),
    usage: {
      input_tokens: usage.promptTokenCount,
      input_tokens_details: { cached_tokens: usage.cachedTokenCount },
      output_tokens: usage.sampledTokenCount,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokenCount ?? 0 },
      total_tokens: usage.promptTokenCount + usage.sampledTokenCount,
    },
  };
}

/**
 * Writes a reply as the events of Responses: each item and its content part is added, grows and is
 * done. Clients differ in the events that they read, so all are sent.
 */
export class ResponsesWriter implements StreamWriter {
  readonly #start: ReplyStart;
  readonly #parts: ReplyPart[] = [];
  readonly #open: ReplyPart[] = [];
  /** Events that are delayed until the end, because they carry logprobs. */
  #delayed: ReplyEvent[] | undefined;
  #tokensByPart: readonly (readonly ReplyToken[])[] = [];
  #count = 0;

  constructor(start: ReplyStart) {
    this.#start = start;
  }

  start(): string {
    const response = envelope(this.#start);
    return (
      this.#event("response.created", { response }) +
      this.#event("response.in_progress", { response })
    );
  }

  write(event: ReplyEvent): string {
    const { includesLogprobs } = this.#start.requested;
    const isTextDone = event.type === "part-end" && event.part.type === "text";
    if (this.#delayed === undefined && !(includesLogprobs && isTextDone)) return this.#send(event);
    this.#delayed = [...(this.#delayed ?? []), event];
    return "";
  }

  #send(event: ReplyEvent): string {
    switch (event.type) {
      case "part-start":
        this.#open[event.index] = event.part;
        return this.#startPart(event.index, event.part);
      case "part-delta":
        return this.#growPart(event.index, event.text);
      case "part-end":
        this.#parts.push(event.part);
        return this.#endPart(event.index, event.part);
    }
  }

  #sendDelayed(tokens: readonly ReplyToken[] = []): string {
    const delayed = this.#delayed ?? [];
    this.#delayed = undefined;
    const ended = delayed.flatMap((event) => (event.type === "part-end" ? [event.part] : []));
    this.#tokensByPart = tokensOfTexts([...this.#parts, ...ended], tokens);
    return delayed.map((event) => this.#send(event)).join("");
  }

  end(end: ReplyEnd): string {
    const rest = this.#sendDelayed(end.tokens);
    const type = end.finish.type === "length" ? "response.incomplete" : "response.completed";
    return rest + this.#event(type, { response: finished(this.#start, this.#parts, end) });
  }

  fail(error: ClientError): string {
    const rest = this.#sendDelayed();
    const { error: sent } = openAiError(error) as { error: { code: string; message: string } };
    const output = this.#parts.map((part) => itemFor(this.#start, part, false));
    const broken = { status: "failed", error: { code: sent.code, message: sent.message }, output };
    return (
      rest + this.#event("response.failed", { response: { ...envelope(this.#start), ...broken } })
    );
  }

  keepAlive(): string {
    return sseComment;
  }

  #startPart(output_index: number, part: ReplyPart): string {
    // The object of such a call is known only when its arguments are complete.
    if (part.type === "call" && isActionForm(part.form)) return "";
    const added = this.#added(output_index, part, part.type === "call" ? {} : { content: [] });
    if (part.type === "call") return added;
    const place = { item_id: part.id, output_index, content_index: 0 };
    return (
      added + this.#event("response.content_part.added", { ...place, part: contentPart(part, "") })
    );
  }

  #added(output_index: number, part: ReplyPart, empty: object): string {
    const item = { ...itemFor(this.#start, part, false), ...empty, status: "in_progress" };
    return this.#event("response.output_item.added", { output_index, item });
  }

  #growPart(output_index: number, delta: string): string {
    const part = this.#open[output_index]!;
    const place = { item_id: part.id, output_index };
    switch (part.type) {
      case "reasoning":
        return this.#event("response.reasoning_text.delta", { ...place, content_index: 0, delta });
      case "text":
        return this.#event("response.output_text.delta", {
          ...place,
          content_index: 0,
          delta,
          logprobs: [],
        });
      case "call":
        // Other forms are known only when the arguments are complete.
        return part.form === undefined
          ? this.#event("response.function_call_arguments.delta", { ...place, delta })
          : "";
    }
  }

  #endPart(output_index: number, part: ReplyPart): string {
    const place = { item_id: part.id, output_index };
    const tokens = this.#tokensByPart[output_index];
    const item = finishedItem(this.#start, part, tokens);
    // Created last, because events are numbered in the order of creation.
    const done = (): string => this.#event("response.output_item.done", { output_index, item });
    if (part.type === "call") return this.#finishCall(output_index, part) + done();
    const { text } = part;
    const inContent = { ...place, content_index: 0 };
    const textDone =
      part.type === "text"
        ? this.#event("response.output_text.done", {
            ...inContent,
            text,
            logprobs: encodeLogprobs(tokens ?? []),
          })
        : this.#event("response.reasoning_text.done", { ...inContent, text });
    const closed = { ...inContent, part: contentPart(part, text, tokens) };
    return textDone + this.#event("response.content_part.done", closed) + done();
  }

  #finishCall(output_index: number, part: CallPart): string {
    const place = { item_id: part.id, output_index };
    if (isActionForm(part.form)) return this.#added(output_index, part, {});
    if (part.form === "custom") {
      const input = customInput(part.text);
      return (
        this.#event("response.custom_tool_call_input.delta", { ...place, delta: input }) +
        this.#event("response.custom_tool_call_input.done", { ...place, input })
      );
    }
    const { name } = calledName(this.#start.requested, part.name);
    const complete = { ...place, name, arguments: part.text };
    return this.#event("response.function_call_arguments.done", complete);
  }

  #event(type: string, data: object): string {
    return sseEvent({ type, sequence_number: this.#count++, ...data }, type);
  }
}
