import { expect, test } from "vitest";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { bindTemplate } from "./bound-template.ts";
import { systemMessage, toolMessage, userMessage } from "./capability/probe-messages.ts";
import { hiddenMessage } from "./hidden-message.ts";

function hiddenBy(source: string, messages: readonly PyDict[]): number | undefined {
  const template = bindTemplate(compileChatTemplate(source), new Map(), new Date(0));
  const conversation = { messages, tools: null, addGenerationPrompt: true };
  return hiddenMessage(template.render(conversation), template, conversation);
}

const every = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

test("hiddenMessage() finds a system message that the template sets aside", () => {
  const source = `{% set messages = messages[1:] if messages[0].role == 'system' else messages %}${every}`;
  expect(hiddenBy(source, [systemMessage("Be brief."), userMessage("Hi")])).toBe(0);
  expect(hiddenBy(source, [userMessage("Hi")])).toBeUndefined();
});

test("hiddenMessage() finds a system message that the template never prints without a user message", () => {
  const source =
    "{% for m in messages %}{% if m.role == 'user' %}" +
    "{{ messages[0].content + '\n' if loop.last and messages[0].role == 'system' }}{{ m.content }}{% endif %}{% endfor %}";
  const system = systemMessage("Be brief.");
  const call = { id: "a", name: "find_parcel", arguments: {} };
  const result = toolMessage(call, "found");
  expect(hiddenBy(source, [system, userMessage("Hi"), result])).toBeUndefined();
  expect(hiddenBy(source, [system, userMessage("Hi"), userMessage("Go on")])).toBeUndefined();
  expect(hiddenBy(source, [system])).toBe(0);
});

test("hiddenMessage() finds contents that the template expects as lists", () => {
  const lists =
    "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}x{% endfor %}";
  expect(hiddenBy(lists, [userMessage("Hi")])).toBe(0);
});

test("hiddenMessage() accepts texts that the template changes, quotes or trims", () => {
  const changing = "{% for m in messages %}{{ m.content|replace('/think', '') }}{% endfor %}";
  expect(hiddenBy(changing, [systemMessage("Plan /think well."), userMessage("Hi")])).toBe(
    undefined,
  );
  const quoting = "{% for m in messages %}{{ m.content|trim|tojson }}{% endfor %}";
  expect(hiddenBy(quoting, [userMessage(' "Hi" ')])).toBeUndefined();
  expect(hiddenBy("nothing", [userMessage(" "), systemMessage("")])).toBeUndefined();
});

test("hiddenMessage() accepts a conversation if the template refuses the words", () => {
  const strict = `{% for m in messages if m.content != 'HI' %}{{ raise_exception('No.') }}{% endfor %}hi`;
  expect(hiddenBy(strict, [userMessage("HI")])).toBeUndefined();
});
