import { describe, expect, test } from "vitest";
import { sampleTemplates } from "../sample-templates.fixture.ts";
import { readOwnTemplates, readPublishedTemplates } from "../chat-templates.fixture.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { toPyValue } from "../../../packages/python-values/src/value.ts";
import { bindTemplate } from "../bound-template.ts";
import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import type { HistoryPolicy, TemplateProfile } from "./classify-template.ts";
import { classifyTemplate } from "./classify-template.ts";
import { assistantMessage, toolMessage, userMessage } from "./probe-messages.ts";
import { controlShapes } from "../delta/stop-literals.ts";

function classify(source: string, policy: HistoryPolicy = "keep"): TemplateProfile {
  const variables = toPyValue({ bos_token: "<s>", eos_token: "</s>" }) as PyDict;
  const template = bindTemplate(compileChatTemplate(source), variables, new Date(2026, 10, 21, 8));
  return classifyTemplate(template, { pattern: controlShapes, known: [] }, policy);
}

const nothing = { system: false, user: false, tool: false, parallelTools: false };
const everything = { system: true, user: true, tool: true, parallelTools: true };

const keptNote =
  "Every prompt is rendered with clear_thinking=false, which keeps earlier reasoning: serve with " +
  "the same, or choose the history policy `split` for the template as it is";
const noToolsNote =
  "The template does not show tool definitions: conversations with tools are refused";

describe("classifyTemplate()", () => {
  test("finds the variable that keeps reasoning and sets it", () => {
    const profile = classify(sampleTemplates.clearing);
    expect(profile.edits).toEqual({ afterTool: "append-only", afterUser: "rewrites" });
    expect(profile.keepThinking).toEqual({
      variable: "clear_thinking",
      value: false,
      edits: { afterTool: "append-only", afterUser: "append-only" },
    });
    expect(profile.template.variables.get("clear_thinking")).toBe(false);
    expect(profile.setsKeepThinking).toBe(true);
    expect(profile.showsTools).toBe(true);
    expect(profile.warnings).toEqual([keptNote]);
    expect(profile.delta.plan).toEqual({
      base: "short",
      needsTools: false,
      closers: ["<|im_end|>"],
    });
    expect(profile.delta.supports).toEqual(everything);
  });

  test('does not set it under "split"', () => {
    const profile = classify(sampleTemplates.clearing, "split");
    expect(profile.keepThinking?.variable).toBe("clear_thinking");
    expect(profile.setsKeepThinking).toBe(false);
    expect(profile.template.variables.has("clear_thinking")).toBe(false);
    expect(profile.warnings).toEqual([]);
  });

  test("does not change a variable that the user set", () => {
    const source = `{% set thinking = thinking|default(true) %}${sampleTemplates.clearing}`;
    const template = bindTemplate(
      compileChatTemplate(source),
      new Map([["clear_thinking", true]]),
      new Date(0),
    );
    const literals = { pattern: controlShapes, known: [] };
    expect(classifyTemplate(template, literals, "keep").keepThinking).toBeUndefined();
  });

  test("sees that an opened reasoning block is gone from the history", () => {
    const profile = classify(sampleTemplates.thinking);
    expect(profile.opensReasoning).toBe(true);
    expect(profile.edits).toEqual({ afterTool: "rewrites", afterUser: "rewrites" });
    expect(profile.showsTools).toBe(false);
    expect(profile.warnings).toEqual([
      noToolsNote,
      "The template rewrites earlier turns after tool results and user messages; the ledger keeps " +
        "them, so serving with this template shows the policy less than it was trained on",
    ]);
  });

  test("sees that the tools move in front of the newest user message", () => {
    const profile = classify(sampleTemplates.moving);
    expect(profile.edits.afterUser).toBe("rewrites");
    expect(profile.delta.plan).toMatchObject({ base: "short", needsTools: true });
    expect(profile.delta.supports.user).toBe(true);
  });

  test("requires the complete history if the template counts results over it", () => {
    const profile = classify(sampleTemplates.counting);
    expect(profile.delta.plan).toMatchObject({ base: "full", needsTools: false });
    expect(profile.warnings).toEqual([
      noToolsNote,
      "What follows a turn depends on the history: each turn renders the whole conversation",
    ]);
  });

  test("warns that tool results are dropped", () => {
    const profile = classify(sampleTemplates.deaf);
    expect(profile.delta.supports).toEqual({ ...everything, tool: false, parallelTools: false });
    expect(profile.warnings).toContain(
      "The template drops tool results: give them as user messages",
    );
  });

  test("warns that stop tokens open the next turn", () => {
    expect(classify(sampleTemplates.opening).warnings[0]).toMatch(
      /^The stop tokens <\|user\|> <\|observation\|> open the next turn/,
    );
  });

  test("warns that no token closes a turn", () => {
    const profile = classify(sampleTemplates.plain);
    expect(profile.delta.supports).toEqual(nothing);
    expect(profile.warnings[0]).toBe(
      "No control token ends an assistant turn in this template: deltas are refused",
    );
  });

  test("passes arguments as text to a template that takes text", () => {
    const { template, delta } = classify(sampleTemplates.joining);
    expect(delta.supports).toEqual(everything);
    const call = { id: "1", name: "f", arguments: { a: "é" } };
    const messages = [
      userMessage("x"),
      assistantMessage({ content: "", calls: [call] }),
      toolMessage(call, "y"),
    ];
    expect(template.render({ messages, tools: null, addGenerationPrompt: false })).toBe(
      '<|user|>x<|end|><|assistant|>f{"a": "é"}<|end|><|tool|>y<|end|>',
    );
  });

  test("measures without tools and without a system message if the template refuses them", () => {
    const source = `{% if tools or messages[0].role == 'system' %}{{ raise_exception('No.') }}{% endif %}${sampleTemplates.clearing}`;
    const profile = classify(source);
    expect(profile.delta.supports).toEqual(everything);
    expect(profile.warnings).toEqual([
      "The template refuses tool definitions in OpenAI's shape",
      keptNote,
    ]);
  });

  test("warns about a printed date, and about text beside a call that is dropped", () => {
    const source = `{{ strftime_now('%d') }}${sampleTemplates.clearing.replace(
      "{{- m.content }}",
      "{{- m.content if not m.tool_calls }}",
    )}`;
    expect(classify(source).warnings).toEqual([
      keptNote,
      "The template prints today's date: the prompts of a run keep the day on which it began " +
        "(`promptTime` in run.json), those of a renderer of your own the `now` of createRenderer()",
      "The template drops the text beside a tool call from the history: the gateway gives such a text a turn of " +
        "its own if the template shows that, and counts it as `text-not-shown` if not",
    ]);
  });
});

test.each([
  [
    "{% if not m.tool_calls or not m.content %}",
    "The template drops tool calls beside text from the history: the gateway gives such a text a turn of its own " +
      "if the template shows the calls then, and refuses the request if not",
  ],
  [
    "{% if m.tool_calls and m.content and m.reasoning_content %}{{ raise_exception('no') }}{% endif %}{% if true %}",
    "The template refuses a turn with reasoning, text and a tool call in the history: the gateway gives such a text a " +
      "turn of its own",
  ],
] as const)(
  "warns about turns with text and calls that lose calls, or are refused",
  (condition, warning) => {
    const { clearing } = sampleTemplates;
    const calls = /\{%- for c in m.tool_calls.*?endfor %\}/s.exec(clearing)![0];
    const source = clearing.replace(calls, `${condition}${calls}{% endif %}`);
    expect(classify(source).warnings).toEqual([keptNote, warning]);
  },
);

describe.each([
  [
    "templates in this repository",
    readOwnTemplates(),
    {
      edits: {
        "append-only, append-only": 6,
        "append-only, rewrites": 6,
        "rewrites, append-only": 2,
        "rewrites, rewrites": 1,
      },
      variables: { "clear_thinking=false": 1, "truncate_history_thinking=false": 1 },
    },
  ],
  [
    "published templates",
    readPublishedTemplates(),
    {
      edits: {
        "append-only, append-only": 60,
        "append-only, rewrites": 42,
        "rewrites, append-only": 16,
        "rewrites, rewrites": 23,
        "not-renderable, append-only": 8,
        "not-renderable, rewrites": 2,
        "not-renderable, not-renderable": 4,
      },
      variables: {
        "clear_thinking=false": 7,
        "keep_past_thinking=true": 1,
        "preserve_thinking=true": 4,
        "truncate_history_thinking=false": 6,
      },
    },
  ],
])("classifyTemplate() over %s", (_, templates, counts) => {
  test.skipIf(templates.length === 0)(
    "finds what they do to the history and the variables that prevent it",
    () => {
      const edits: Record<string, number> = {};
      const variables: Record<string, number> = {};
      for (const { source } of templates) {
        const { edits: found, keepThinking } = classify(source);
        const key = `${found.afterTool}, ${found.afterUser}`;
        edits[key] = (edits[key] ?? 0) + 1;
        if (keepThinking === undefined) continue;
        const setting = `${keepThinking.variable}=${keepThinking.value}`;
        variables[setting] = (variables[setting] ?? 0) + 1;
      }
      expect({ edits, variables }).toEqual(counts);
    },
  );
});
