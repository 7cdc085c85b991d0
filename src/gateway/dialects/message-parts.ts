import type { ContentForm, PartUse } from "./content-text.ts";
import { partSeparator } from "./content-text.ts";

type Parts = Readonly<Record<string, PartUse>>;

/** OpenAI's two protocols name the same texts differently, and clients mix the names. */
const texts = { text: "text", input_text: "text", output_text: "text" } as const satisfies Parts;

/** Parts of users, systems and tools in Chat Completions. */
export const chatParts = {
  ...texts,
  image_url: "refused",
  input_audio: "refused",
  file: "refused",
} as const satisfies Parts;

/** Parts of an assistant in Chat Completions. Other models' thoughts come in several spellings. */
export const chatSaidParts = {
  ...texts,
  refusal: "refusal",
  thinking: "thought",
  reasoning: "thought",
  redacted_thinking: "sealed",
} as const satisfies Parts;

/** Parts of users, systems and results in Responses. */
export const responsesParts = {
  ...texts,
  input_image: "refused",
  input_file: "refused",
  input_audio: "refused",
} as const satisfies Parts;

/** Parts of an assistant in Responses. */
export const responsesSaidParts = {
  ...texts,
  refusal: "refusal",
  reasoning_text: "thought",
  summary_text: "thought",
} as const satisfies Parts;

/** Parts of a reasoning item, or of its summary. */
export const responsesThoughtParts = {
  reasoning_text: "text",
  summary_text: "text",
  text: "text",
} as const satisfies Parts;

/** Blocks of systems, users and results in Messages, but for results themselves. */
export const messagesParts = {
  text: "text",
  image: "refused",
  document: "refused",
  search_result: "refused",
  tool_reference: "refused",
  browser_state: "refused",
  container_upload: "refused",
} as const satisfies Parts;

/** A message that is asked of the policy or told to it. */
export function askedForm(parts: Parts): ContentForm {
  return { parts, separator: partSeparator };
}

/** A message that an assistant said: its parts are pieces of one text. */
export function saidForm(parts: Parts): ContentForm {
  return { parts, separator: "" };
}
