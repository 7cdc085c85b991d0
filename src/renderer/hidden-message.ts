import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { BoundTemplate, TemplateConversation } from "./bound-template.ts";
import { tryRender } from "./bound-template.ts";
import { chooseNonce } from "./delta/environment-delta.ts";
import { messageTexts, occurInOrder } from "./message-texts.ts";
import { roleOf } from "./openai-messages.ts";

/**
 * Returns the index of the first system or user message that a rendering does not contain, or `undefined` if it
 * contains all. A policy cannot follow what it does not see.
 *
 * Templates may change a text: some remove `/think` from it. Some, such as Mistral's, print the system message only if
 * a user message is the last one. So a message counts as hidden only if the template does not print a plain word in
 * place of its text either, in the conversation up to the last user message.
 */
export function hiddenMessage(
  rendering: string,
  template: BoundTemplate,
  conversation: TemplateConversation,
): number | undefined {
  const { messages, tools } = conversation;
  const texts = messages.map((message) => (isGiven(message) ? messageTexts(message) : []));
  if (occurInOrder(rendering, texts) === undefined) return undefined;
  const nonce = chooseNonce([messages, tools]);
  const end = messages.findLastIndex((message) => roleOf(message) === "user");
  const answered = end === -1 ? messages : messages.slice(0, end + 1);
  const marked = answered.map((message, index) =>
    hasText(texts[index]!) ? new Map(message).set("content", `${nonce}${index}z`) : message,
  );
  const probe = tryRender(template, { ...conversation, messages: marked });
  if (probe === undefined) return undefined;
  const printed = new Set<number>();
  for (const [, index] of probe.matchAll(new RegExp(`${nonce}(\\d+)z`, "g"))) {
    printed.add(Number(index));
  }
  const hidden = marked.findIndex((_, index) => hasText(texts[index]!) && !printed.has(index));
  return hidden === -1 ? undefined : hidden;
}

function isGiven(message: PyDict): boolean {
  const role = roleOf(message);
  return role === "system" || role === "user";
}

function hasText(texts: readonly string[]): boolean {
  return texts.some((text) => text.trim() !== "");
}
