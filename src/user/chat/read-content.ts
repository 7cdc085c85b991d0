import { ChatFailure } from "../../engine/chat/chat-failure.ts";
import type { LanguageModelAnswer } from "./language-model-call.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The text of a part, or its kind if it has none. */
type Part = { readonly text: string } | "reasoning" | "refusal";

/**
 * Reads the content of a message: text, or a list of parts as Mistral and some proxies send it.
 * Joins the texts and omits reasoning.
 *
 * @throws ChatFailure `bad-reply` for a part of an unknown form.
 */
export function readContent(message: Fields): Pick<LanguageModelAnswer, "text" | "instead"> {
  const content = message["content"] ?? [];
  const parts: readonly Part[] = Array.isArray(content)
    ? content.map((part, index) => readPart(part, `content[${index}]`))
    : [readPart(content, "content")];
  const text = parts.map((part) => (typeof part === "string" ? "" : part.text)).join("");
  if (text !== "") return { text };
  if (parts.includes("refusal") || isText(message["refusal"])) return { text, instead: "refusal" };
  const reasoning = message["reasoning_content"] ?? message["reasoning"];
  const isReasoning = parts.includes("reasoning") || isText(reasoning);
  return { text, ...(isReasoning && { instead: "reasoning" }) };
}

function readPart(part: unknown, place: string): Part {
  if (typeof part === "string") return { text: part };
  const { type, text } = (part ?? {}) as { readonly type?: unknown; readonly text?: unknown };
  switch (type) {
    case "text":
    case "output_text":
      if (typeof text === "string") return { text };
      break;
    case "thinking":
    case "redacted_thinking":
    case "reasoning":
      return "reasoning";
    case "refusal":
      return "refusal";
    default:
  }
  const found =
    type === "text" || type === "output_text" ? "a text part without a text" : nameOf(part);
  throw new ChatFailure("bad-reply", `${place} of the reply is ${found}, expected text`, {
    retryable: true,
  });
}

function nameOf(part: unknown): string {
  const { type } = (part ?? {}) as { readonly type?: unknown };
  if (typeof type === "string") return `a part of type ${JSON.stringify(type.slice(0, 60))}`;
  if (part === null) return "null";
  return Array.isArray(part) ? "a list" : typeof part;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
