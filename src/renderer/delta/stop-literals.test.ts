import { describe, expect, test } from "vitest";
import { sampleTemplates } from "../sample-templates.fixture.ts";
import { bindTemplate } from "../bound-template.ts";
import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import type { StopLiterals } from "./stop-literals.ts";
import { controlShapes, learnStopLiterals } from "./stop-literals.ts";

function learn(source: string, known: readonly string[] = []): StopLiterals {
  const template = bindTemplate(compileChatTemplate(source), new Map(), new Date(0));
  return learnStopLiterals(template, { pattern: controlShapes, known });
}

/** A template with assistant turns that end as given. */
function ending(close: string): string {
  return `{% for m in messages %}<|start|>{{ m.role + '<|sep|>' + m.content }}
{%- for c in m.tool_calls or [] %}{{ c.function.arguments|tojson }}{% endfor %}
{%- if m.role == 'assistant' %}${close}{% else %}<|stop|>{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|start|>assistant<|sep|>{% endif %}`;
}

describe("learnStopLiterals()", () => {
  test("finds the token that closes every turn", () => {
    expect(learn(sampleTemplates.clearing)).toEqual({
      closers: ["<|im_end|>"],
      openers: [],
      sampled: ["<|im_end|>"],
    });
  });

  test("finds the tokens that open the next turn if only these close a turn", () => {
    expect(learn(sampleTemplates.opening)).toEqual({
      closers: ["<|user|>", "<|observation|>"],
      openers: ["<|user|>", "<|observation|>"],
      sampled: ["<|user|>", "<|observation|>"],
    });
  });

  test("distinguishes the closer of the history from the sampled one", () => {
    expect(learn(sampleTemplates.returning)).toEqual({
      closers: ["<|return|>", "<|end|>", "<|call|>"],
      openers: [],
      sampled: ["<|return|>", "<|call|>"],
    });
  });

  test("takes the last of several closing tokens", () => {
    expect(learn(ending("<|END_RESPONSE|><|END_OF_TURN_TOKEN|>")).sampled).toEqual([
      "<|END_OF_TURN_TOKEN|>",
    ]);
  });

  test("takes the literal that the model's files name, if several are printed", () => {
    const source = ending("<|eot|><|extra|>");
    expect(learn(source).closers).toEqual(["<|extra|>"]);
    expect(learn(source, ["<|eot|>"]).closers).toEqual(["<|eot|>"]);
  });

  test("finds the close if the template always adds the generation prompt", () => {
    const source = ending("<|END_RESPONSE|><|stop|>").replace("add_generation_prompt", "true");
    expect(learn(source).closers).toEqual(["<|stop|>"]);
  });

  test("does not take a token that only a default system message shares for an opener", () => {
    const source = `<|im_start|>system\nHello<|im_end|>\n${sampleTemplates.clearing}`;
    expect(learn(source).openers).toEqual([]);
  });

  test("finds no literal if no control token is printed", () => {
    expect(learn(sampleTemplates.plain)).toEqual({ closers: [], openers: [], sampled: [] });
  });
});
