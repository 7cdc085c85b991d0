import type { ClientError, ClientErrorKind } from "../client-error.ts";
import type { Reply, ReplyEvent, ReplyFinish, ReplyPart, ReplyStart } from "../conversation.ts";
import { sseEvent, type ReplyEnd, type StreamWriter } from "./dialect.ts";
import { WrittenJson } from "../../json/exact-json.ts";

/** Encodes a finished reply for Messages. */
export function encodeMessagesReply({ start, parts, finish, usage }: Reply): object {
  const { promptTokenCount, cachedTokenCount, sampledTokenCount } = usage;
  return {
    ...envelope(start),
    content: parts.map(encodePart),
    ...ending(finish),
    usage: countsOf(promptTokenCount, cachedTokenCount, sampledTokenCount),
  };
}

function envelope({ id, requested }: ReplyStart) {
  return { id, type: "message", role: "assistant", model: requested.model };
}

function encodePart(part: ReplyPart): object {
  switch (part.type) {
    case "reasoning":
      return { type: "thinking", thinking: part.text, signature: part.signature };
    case "text":
      return { type: "text", text: part.text };
    case "call":
      return {
        type: "tool_use",
        id: part.callId,
        name: part.name,
        input: new WrittenJson(part.text),
      };
  }
}

function ending(finish: ReplyFinish) {
  const reasons = { stop: "end_turn", calls: "tool_use", length: "max_tokens" } as const;
  return finish.type === "stop-text"
    ? { stop_reason: "stop_sequence", stop_sequence: finish.text }
    : { stop_reason: reasons[finish.type], stop_sequence: null };
}

/** Returns the usage. Messages counts cached tokens separately from `input_tokens`. */
function countsOf(prompt: number, cached: number, sampled: number) {
  return {
    input_tokens: prompt - cached,
    output_tokens: sampled,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
  };
}

/** Writes a reply as the events of Messages: each block starts, grows and stops. */
export class MessagesWriter implements StreamWriter {
  readonly #start: ReplyStart;
  readonly #kinds: ReplyPart["type"][] = [];

  constructor(start: ReplyStart) {
    this.#start = start;
  }

  start(): string {
    const usage = countsOf(this.#start.promptTokenCount, 0, 1);
    const open = { content: [], stop_reason: null, stop_sequence: null, usage };
    const message = { ...envelope(this.#start), ...open };
    return event("message_start", { message }) + this.keepAlive();
  }

  write(change: ReplyEvent): string {
    const { index } = change;
    switch (change.type) {
      case "part-start":
        this.#kinds[index] = change.part.type;
        return event("content_block_start", { index, content_block: emptyBlock(change.part) });
      case "part-delta":
        return event("content_block_delta", { index, delta: this.#delta(index, change.text) });
      case "part-end":
        return signature(index, change.part) + event("content_block_stop", { index });
    }
  }

  end({ finish, usage }: ReplyEnd): string {
    const { promptTokenCount, cachedTokenCount, sampledTokenCount } = usage;
    const counts = countsOf(promptTokenCount, cachedTokenCount, sampledTokenCount);
    return (
      event("message_delta", { delta: ending(finish), usage: counts }) + event("message_stop", {})
    );
  }

  fail(error: ClientError): string {
    return sseEvent(anthropicError(error), "error");
  }

  keepAlive(): string {
    return event("ping", {});
  }

  #delta(index: number, text: string): object {
    switch (this.#kinds[index]) {
      case "reasoning":
        return { type: "thinking_delta", thinking: text };
      case "call":
        return { type: "input_json_delta", partial_json: text };
      default:
        return { type: "text_delta", text };
    }
  }
}

function event(type: string, data: object): string {
  return sseEvent({ type, ...data }, type);
}

function emptyBlock(part: ReplyPart): object {
  switch (part.type) {
    case "reasoning":
      return { type: "thinking", thinking: "", signature: "" };
    case "text":
      return { type: "text", text: "" };
    case "call":
      return { type: "tool_use", id: part.callId, name: part.name, input: {} };
  }
}

function signature(index: number, part: ReplyPart): string {
  if (part.type !== "reasoning") return "";
  const delta = { type: "signature_delta", signature: part.signature };
  return event("content_block_delta", { index, delta });
}

/** Encodes an error for Anthropic's clients. */
export function anthropicError({ kind, message }: ClientError): object {
  return { type: "error", error: { type: names[kind], message }, request_id: null };
}

const names: Readonly<Record<ClientErrorKind, string>> = {
  invalid: "invalid_request_error",
  "too-long": "invalid_request_error",
  finished: "turnwright_finished",
  unauthorized: "authentication_error",
  forbidden: "permission_error",
  "not-found": "not_found_error",
  "too-large": "request_too_large",
  "bad-encoding": "invalid_request_error",
  overloaded: "overloaded_error",
  unavailable: "api_error",
  internal: "api_error",
};
