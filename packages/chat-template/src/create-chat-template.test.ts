import { expect, test } from "vitest";
import { createChatTemplate } from "./create-chat-template.ts";

const messages = [{ role: "user", content: "Hi" }];

test("renders plain messages, tools and further variables", () => {
  const source =
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}" +
    "{{ tools | tojson }}{% if add_generation_prompt %} assistant:{% endif %}";
  const template = createChatTemplate(source);
  const tools = [{ type: "function", function: { name: "find", limit: 1, share: 0.5 } }];
  const variables = { messages, tools, add_generation_prompt: true, bos_token: "<s>" };
  expect(template.render(variables)).toBe(
    '<s>user: Hi\n[{"type": "function", "function": {"name": "find", "limit": 1, "share": 0.5}}] assistant:',
  );
});

test("renders a tool as it is at each call, also if the caller changes its dictionary", () => {
  const template = createChatTemplate("{% for tool in tools %}{{ tool | tojson }}{% endfor %}");
  const tool = new Map([["a", "1"]]);
  expect(template.render({ messages, tools: [tool] })).toBe('{"a": "1"}');
  tool.set("a", "2");
  expect(template.render({ messages, tools: [tool] })).toBe('{"a": "2"}');
});

test("leaves out what is not given, as transformers does", () => {
  const source = "{{ tools }} {{ add_generation_prompt }} {{ enable_thinking is defined }}";
  const template = createChatTemplate(source);
  expect(template.render({ messages })).toBe("None False False");
  expect(template.render({ messages, tools: null, enable_thinking: undefined })).toBe(
    "None False False",
  );
});

test("takes the time for strftime_now, and limits", () => {
  const template = createChatTemplate("{{ strftime_now('%Y-%m-%d') }}");
  expect(template.render({ messages }, new Date(2026, 0, 31))).toBe("2026-01-31");
  const endless = createChatTemplate("{% for i in range(1000) %}x{% endfor %}", {
    limits: { steps: 100 },
  });
  expect(() => endless.render({ messages })).toThrow("steps");
});
