import { expect, test } from "vitest";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import { bindTemplate } from "./bound-template.ts";
import { toTemplateMessage } from "./openai-messages.ts";

test.each([
  [
    "{{ messages[0].tool_calls[0].function.arguments | tojson }}",
    String.raw`{"q": "x\ud83dy \u{1F600}"}`,
  ],
  ["{{ messages[0].tool_calls[0].function.arguments.q }}", String.raw`x\ud83dy \u{1F600}`],
])("a half of a surrogate pair in a call's arguments stays an escape in %s", (source, expected) => {
  const argumentsText = String.raw`{"q": "x\ud83dy \ud83d\ude00"}`;
  const call = { id: "a", name: "search", argumentsText };
  const message = toTemplateMessage({ role: "assistant", content: "", toolCalls: [call] });
  const template = bindTemplate(
    compileChatTemplate(source),
    new Map<string, PyValue>(),
    new Date(0),
  );
  const shown = template.render({ messages: [message], tools: null, addGenerationPrompt: false });
  expect(shown).toBe(expected.replace(String.raw`\u{1F600}`, "\u{1F600}"));
});
