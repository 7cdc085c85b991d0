import type { ContentForm, PartUse } from "./content-text.ts";
import { partSeparator } from "./content-text.ts";

type Parts = Readonly<Record<string, PartUse>>;

/** The types of text parts. OpenAI's two protocols use different names, and clients mix them. */
const texts = { text: "text", input_text: "text", output_text: "text" } as const satisfies Parts;

/** The treatment of parts of user, system and tool messages in Chat Completions. */
export const chatParts = {
  ...texts,
  image_url: "refused",
  input_audio: "refused",
  file: "refused",
} as const satisfies Parts;

/**
 * The treatment of parts of assistant messages in Chat Completions, including the reasoning parts
 * of several servers.
 */
export const chatSaidParts = {
  ...texts,
  refusal: "refusal",
  thinking: "thought",
  reasoning: "thought",
  redacted_thinking: "sealed",
} as const satisfies Parts;

/** The treatment of parts of user messages, system messages and results in Responses. */
export const responsesParts = {
  ...texts,
  input_image: "refused",
  input_file: "refused",
  input_audio: "refused",
} as const satisfies Parts;

/** The treatment of parts of assistant messages in Responses. */
export const responsesSaidParts = {
  ...texts,
  refusal: "refusal",
  reasoning_text: "thought",
  summary_text: "thought",
} as const satisfies Parts;

/** The treatment of parts of a reasoning item or of its summary in Responses. */
export const responsesThoughtParts = {
  reasoning_text: "text",
  summary_text: "text",
  text: "text",
} as const satisfies Parts;

/** The treatment of blocks in system messages, user messages and tool results of Messages. */
export const messagesParts = {
  text: "text",
  image: "refused",
  document: "document",
  search_result: "search-result",
  tool_reference: "refused",
  browser_state: "refused",
  container_upload: "refused",
} as const satisfies Parts;

/** Returns the form of messages to the policy, with a separator between parts. */
export function inputForm(parts: Parts): ContentForm {
  return { parts, separator: partSeparator };
}

/** Returns the form of assistant messages. Their parts are pieces of one text. */
export function assistantForm(parts: Parts): ContentForm {
  return { parts, separator: "" };
}
