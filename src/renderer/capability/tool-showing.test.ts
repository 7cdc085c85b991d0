import { describe, expect, test } from "vitest";
import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import { bindTemplate, type BoundTemplate } from "../bound-template.ts";
import { sampleTemplates } from "../sample-templates.fixture.ts";
import { assistantMessage, probeTools, userMessage } from "./probe-messages.ts";
import { createProber } from "./prober.ts";
import { hiddenTool, measureToolShowing } from "./tool-showing.ts";

const bind = (source: string): BoundTemplate =>
  bindTemplate(compileChatTemplate(source), new Map(), new Date(0));

const texts = "{% for m in messages %}{{ m.content + '\\n' }}{% endfor %}";

/** Prints tools only if the last message is a user's. */
const lastOnly = `{% if tools and messages[-1].role == 'user' %}{{ tools|tojson }}{% endif %}${texts}`;

/** Prints tools of one name only. */
const oneName = `{% for t in tools or [] %}{% if t.function.name == 'find_parcel' or messages|length == 1 %}{{ t.function.name }}{% endif %}{% endfor %}${texts}`;

/** Refuses definitions with a description. */
const refusing = `{% for t in tools or [] %}{% if t.function.description %}{{ raise_exception('no') }}{% endif %}{% endfor %}${texts}`;

test.each([
  ["clearing", sampleTemplates.clearing, "always"],
  ["deaf", sampleTemplates.deaf, "never"],
  ["lastOnly", lastOnly, "sometimes"],
  ["refusing", refusing, "sometimes"],
] as const)(
  "measures the conversations in which the template %s prints tools",
  (_, source, showing) => {
    expect(measureToolShowing(createProber(bind(source)))).toBe(showing);
  },
);

describe("hiddenTool()", () => {
  const show = (source: string, words: string, showing: "always" | "never" | "sometimes") => {
    const template = bind(source);
    const messages = [
      userMessage("Use find_parcel, then return_parcel."),
      assistantMessage({ content: words }),
    ];
    const conversation = { messages, tools: probeTools, addGenerationPrompt: true };
    return hiddenTool(template.render(conversation), conversation, { template, showing });
  };

  test("names the first tool that only a message contains", () => {
    expect(show(texts, "Yes.", "never")).toBe("find_parcel");
    expect(show(texts, "Yes.", "sometimes")).toBe("find_parcel");
    expect(show(oneName, "Yes.", "sometimes")).toBe("find_parcel");
  });

  test("finds nothing if the template defines the tools, or there are none", () => {
    expect(show(`{{ tools|tojson }}${texts}`, "Yes.", "sometimes")).toBeUndefined();
    expect(show(texts, "Yes.", "always")).toBeUndefined();
    const template = bind(texts);
    const conversation = { messages: [userMessage("Hi")], tools: null, addGenerationPrompt: true };
    expect(hiddenTool("Hi", conversation, { template, showing: "never" })).toBeUndefined();
  });

  test("names a tool that nothing contains, in each template", () => {
    for (const showing of ["always", "never", "sometimes"] as const) {
      const conversation = {
        messages: [userMessage("Hi")],
        tools: probeTools,
        addGenerationPrompt: true,
      };
      const facts = { template: bind(texts), showing };
      expect(hiddenTool("Hi", conversation, facts)).toBe("find_parcel");
    }
  });
});
