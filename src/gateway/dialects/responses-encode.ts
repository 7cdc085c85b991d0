import type { ClientError } from "../client-error.ts";
import type {
  AskedTurn,
  Reply,
  ReplyEvent,
  ReplyFinish,
  ReplyPart,
  ReplyStart,
  ReplyUsage,
} from "../conversation.ts";
import { sseComment, sseEvent, type ReplyEnd, type StreamWriter } from "./dialect.ts";
import { openAiError } from "./openai-error.ts";
import { namespacedTools } from "./tool-namespaces.ts";

/** A finished reply as Responses gives it. */
export function encodeResponsesReply({ start, parts, finish, usage }: Reply): object {
  return finished(start, parts, { finish, usage });
}

/** The item of a part, as it stands in a reply and as a later request may name it by its id. */
export function encodeItem(part: ReplyPart, withEncryptedContent: boolean): object {
  const { id } = part;
  switch (part.type) {
    case "reasoning": {
      const content = [{ type: "reasoning_text", text: part.text }];
      const encrypted = withEncryptedContent ? { encrypted_content: part.signature } : {};
      return { type: "reasoning", id, summary: [], content, ...encrypted, status: "completed" };
    }
    case "text":
      return {
        ...{ type: "message", id, status: "completed", role: "assistant" },
        content: [outputText(part.text)],
      };
    case "call": {
      const { callId: call_id, name, text } = part;
      return { type: "function_call", id, call_id, name, arguments: text, status: "completed" };
    }
  }
}

/** The same in the words of the request: tools that it has in namespaces are called there. */
function itemFor({ asked }: ReplyStart, part: ReplyPart, withEncryptedContent: boolean): object {
  const item = encodeItem(part, withEncryptedContent);
  return part.type === "call" ? { ...item, ...calledName(asked, part.name) } : item;
}

function calledName({ echo }: AskedTurn, name: string): { readonly name: string } {
  return namespacedTools(echo["tools"]).get(name) ?? { name };
}

function outputText(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function envelope({ id, createdAtMs, asked }: ReplyStart) {
  const defaults = {
    ...{ instructions: null, max_output_tokens: null, metadata: {}, parallel_tool_calls: true },
    ...{ previous_response_id: null, reasoning: { effort: null, summary: null }, store: true },
    ...{ temperature: 1, text: { format: { type: "text" } }, tool_choice: "auto", tools: [] },
    ...{ top_p: 1, truncation: "disabled" },
  };
  return {
    ...{ id, object: "response", created_at: Math.floor(createdAtMs / 1000) },
    ...{ status: "in_progress", error: null, incomplete_details: null, model: asked.model },
    ...defaults,
    ...asked.echo,
    ...{ output: [] as readonly object[], usage: null as object | null },
  };
}

function finished(
  start: ReplyStart,
  parts: readonly ReplyPart[],
  { finish, usage }: { readonly finish: ReplyFinish; readonly usage: ReplyUsage },
): object {
  const isCut = finish.type === "length";
  return {
    ...envelope(start),
    status: isCut ? "incomplete" : "completed",
    ...(isCut ? { incomplete_details: { reason: "max_output_tokens" } } : {}),
    output: parts.map((part) => itemFor(start, part, start.asked.includesEncryptedReasoning)),
    usage: {
      input_tokens: usage.promptTokenCount,
      input_tokens_details: { cached_tokens: usage.cachedTokenCount },
      output_tokens: usage.sampledTokenCount,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.promptTokenCount + usage.sampledTokenCount,
    },
  };
}

/**
 * Writes a reply as the events of Responses: each item is added, its content part is added, grows and is
 * done, and the item is done. All are sent: every client reads others of them.
 */
export class ResponsesWriter implements StreamWriter {
  readonly #start: ReplyStart;
  readonly #parts: ReplyPart[] = [];
  readonly #open: ReplyPart[] = [];
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
    switch (event.type) {
      case "part-start":
        this.#open[event.index] = event.part;
        return this.#begin(event.index, event.part);
      case "part-delta":
        return this.#grow(event.index, event.text);
      case "part-end":
        this.#parts.push(event.part);
        return this.#finish(event.index, event.part);
    }
  }

  end(end: ReplyEnd): string {
    const type = end.finish.type === "length" ? "response.incomplete" : "response.completed";
    return this.#event(type, { response: finished(this.#start, this.#parts, end) });
  }

  fail(error: ClientError): string {
    const { error: told } = openAiError(error) as { error: { code: string; message: string } };
    const output = this.#parts.map((part) => itemFor(this.#start, part, false));
    const broken = { status: "failed", error: { code: told.code, message: told.message }, output };
    return this.#event("response.failed", { response: { ...envelope(this.#start), ...broken } });
  }

  keepAlive(): string {
    return sseComment;
  }

  #begin(output_index: number, part: ReplyPart): string {
    const whole = itemFor(this.#start, part, false);
    const empty = part.type === "call" ? { arguments: "" } : { content: [] };
    const item = { ...whole, ...empty, status: "in_progress" };
    const added = this.#event("response.output_item.added", { output_index, item });
    if (part.type === "call") return added;
    const place = { item_id: part.id, output_index, content_index: 0 };
    return (
      added + this.#event("response.content_part.added", { ...place, part: contentPart(part, "") })
    );
  }

  #grow(output_index: number, delta: string): string {
    const part = this.#open[output_index]!;
    const place = { item_id: part.id, output_index };
    switch (part.type) {
      case "reasoning":
        return this.#event("response.reasoning_text.delta", { ...place, content_index: 0, delta });
      case "text":
        return this.#event("response.output_text.delta", {
          ...{ ...place, content_index: 0, delta, logprobs: [] },
        });
      case "call":
        return this.#event("response.function_call_arguments.delta", { ...place, delta });
    }
  }

  #finish(output_index: number, part: ReplyPart): string {
    const { asked } = this.#start;
    const place = { item_id: part.id, output_index };
    const item = itemFor(this.#start, part, asked.includesEncryptedReasoning);
    // Numbers are given as events are made, so this one comes last.
    const done = (): string => this.#event("response.output_item.done", { output_index, item });
    if (part.type === "call") {
      const { name } = calledName(asked, part.name);
      const whole = { ...place, name, arguments: part.text };
      return this.#event("response.function_call_arguments.done", whole) + done();
    }
    const { text } = part;
    const inContent = { ...place, content_index: 0 };
    const told =
      part.type === "text"
        ? this.#event("response.output_text.done", { ...inContent, text, logprobs: [] })
        : this.#event("response.reasoning_text.done", { ...inContent, text });
    const closed = { ...inContent, part: contentPart(part, text) };
    return told + this.#event("response.content_part.done", closed) + done();
  }

  #event(type: string, data: object): string {
    return sseEvent({ type, sequence_number: this.#count++, ...data }, type);
  }
}

function contentPart(part: ReplyPart, text: string): object {
  return part.type === "text" ? outputText(text) : { type: "reasoning_text", text };
}
