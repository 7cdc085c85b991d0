import { isObject } from "../../values/is-object.ts";
import { ChatFailure } from "./chat-failure.ts";
import type { ChatToolCall, ChatTurn, ChatTurnUsage, OtherMembers } from "./chat-turn.ts";
import {
  isCutReason,
  readChatUsage,
  type Fields,
  type PostedCompletion,
} from "./post-completion.ts";

/** The members of a message that a `ChatTurn` has in another form or does not need. All others are kept as they are. */
const readMembers: ReadonlySet<string> = new Set([
  "role",
  "content",
  "refusal",
  "tool_calls",
  "function_call",
]);

/**
 * Reads a completion as a turn: text, calls in any form, reasoning and usage. The turn keeps the model's mistakes, such
 * as arguments that are not JSON.
 *
 * @throws ChatFailure `content-filter` if the server withheld the reply, and `bad-reply` for a content or a list of
 *   calls of an unknown form.
 */
export function readChatTurn({ message, finishReason, body }: PostedCompletion): ChatTurn {
  if (finishReason === "content_filter") {
    throw new ChatFailure("content-filter", "the server's content filter withheld the reply");
  }
  const { text, reasoning: ofParts } = readParts(message["content"]);
  const refusal = textOf(message["refusal"]);
  const reasoning = textOf(message["reasoning_content"]) || textOf(message["reasoning"]) || ofParts;
  const members = otherMembers(message, readMembers);
  const usage = readUsage(body);
  const model = textOf(body["model"]);
  return {
    content: text === "" ? refusal : text,
    ...(reasoning !== "" && { reasoning }),
    toolCalls: readCalls(message),
    finish: isCutReason(finishReason) ? "length" : "stop",
    ...(usage && { usage }),
    ...(model !== "" && { model }),
    ...(members && { members }),
  };
}

/** Reads a content: a text, or a list of parts as Mistral and some proxies send it. */
function readParts(content: unknown): { readonly text: string; readonly reasoning: string } {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content ?? ""];
  let text = "";
  let reasoning = "";
  for (const [index, part] of parts.entries()) {
    const read = readPart(part, Array.isArray(content) ? `content[${index}]` : "content");
    text += read.text ?? "";
    reasoning += read.reasoning ?? "";
  }
  return { text, reasoning };
}

function readPart(
  part: unknown,
  place: string,
): { readonly text?: string; readonly reasoning?: string } {
  if (typeof part === "string") return { text: part };
  const { type, text, refusal, thinking } = isObject(part) ? part : {};
  switch (type) {
    case "text":
    case "output_text":
      if (typeof text === "string") return { text };
      break;
    case "refusal":
      return { text: textOf(refusal) };
    case "reasoning":
      return { reasoning: textOf(text) };
    case "redacted_thinking":
      return {};
    case "thinking":
      return { reasoning: Array.isArray(thinking) ? readParts(thinking).text : textOf(thinking) };
    default:
  }
  const found = typeof type === "string" ? `a part of type ${JSON.stringify(type)}` : typeof part;
  throw new ChatFailure("bad-reply", `${place} of the reply is ${found}, expected text`, {
    retryable: true,
  });
}

/** Reads the calls of a message. Servers from before `tools` write one call, as `function_call`. */
function readCalls({ tool_calls: calls, function_call: older }: Fields): readonly ChatToolCall[] {
  const hasNone = calls === undefined || calls === null;
  if (hasNone || (Array.isArray(calls) && calls.length === 0)) {
    return isObject(older) ? [readCall({ function: older })] : [];
  }
  if (!Array.isArray(calls)) {
    throw new ChatFailure("bad-reply", "tool_calls of the reply is not a list", {
      retryable: true,
    });
  }
  return calls.map(readCall);
}

/** The members of a call that a `ChatToolCall` has in another form or does not need. All others are kept as they are. */
const readCallMembers: ReadonlySet<string> = new Set(["id", "type", "index", "function", "custom"]);

/** Reads a call, also of a tool with free text, and with arguments that are not written as text. */
function readCall(call: unknown): ChatToolCall {
  const fields: Fields = isObject(call) ? call : {};
  const named = isObject(fields["function"]) ? fields["function"] : fields["custom"];
  const { name, arguments: given, input } = isObject(named) ? named : {};
  const id = textOf(fields["id"]);
  const members = otherMembers(fields, readCallMembers);
  return {
    ...(id !== "" && { id }),
    ...(typeof name === "string" && name !== "" && { name }),
    argumentsText: argumentsTextOf(given ?? input),
    ...(members && { members }),
  };
}

/**
 * Returns the arguments of a call as text. Some servers write no text for a call without arguments, and some write the
 * arguments as JSON values.
 */
function argumentsTextOf(given: unknown): string {
  if (given === undefined || given === null || given === "") return "{}";
  return typeof given === "string" ? given : JSON.stringify(given);
}

function readUsage(body: Fields): ChatTurnUsage | undefined {
  const usage = readChatUsage(body["usage"]);
  if (usage === null) return undefined;
  const { inputTokenCount, cachedInputTokenCount: cached, outputTokenCount } = usage;
  return {
    promptTokenCount: inputTokenCount,
    ...(cached !== undefined && { cachedTokenCount: cached }),
    sampledTokenCount: outputTokenCount,
  };
}

/** Returns the members that `known` lacks; `undefined` if it has all of them. */
function otherMembers(fields: Fields, known: ReadonlySet<string>): OtherMembers | undefined {
  const others = Object.entries(fields).filter(
    ([name, value]) => !known.has(name) && value !== null && value !== undefined,
  );
  return others.length === 0 ? undefined : Object.fromEntries(others);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
