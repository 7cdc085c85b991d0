import { describe, expect, test } from "vitest";
import { sampleTemplates } from "../sample-templates.fixture.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { bindTemplate } from "../bound-template.ts";
import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import {
  assistantMessage,
  probeTools,
  systemMessage,
  toolMessage,
  userMessage,
} from "./probe-messages.ts";
import { rewritesHistory } from "./rewrite-check.ts";

const opening = [systemMessage("Be kind."), userMessage("Hello")];
const call = { id: "1", name: "find_parcel", arguments: { parcel_id: "7" } };

function rewrites(
  source: string,
  history: readonly PyDict[],
  assistant: PyDict,
  environment: readonly PyDict[],
): boolean {
  const template = bindTemplate(compileChatTemplate(source), new Map(), new Date(0));
  return rewritesHistory(template, { history, assistant, environment, tools: probeTools });
}

describe("rewritesHistory()", () => {
  const { clearing, thinking, moving } = sampleTemplates;
  const reasoned = assistantMessage({ content: "Hi", reasoning: "Greet." });

  test("sees reasoning vanish with a user message", () => {
    expect(rewrites(clearing, opening, reasoned, [userMessage("and?")])).toBe(true);
  });

  test("finds no rewriting within a tool cycle", () => {
    const acting = assistantMessage({ content: "", reasoning: "Look.", calls: [call] });
    expect(rewrites(clearing, opening, acting, [toolMessage(call, "lost")])).toBe(false);
  });

  test("does not count text that had vanished before", () => {
    const history = [...opening, reasoned, userMessage("and?")];
    const plain = assistantMessage({ content: "No more." });
    expect(rewrites(clearing, history, plain, [userMessage("so?")])).toBe(false);
  });

  test("does not take trimmed spaces for a rewrite", () => {
    const trimming = clearing.replace("{{- m.content }}", "{{- m.content|trim }}");
    const spaced = assistantMessage({ content: "  Hi \n" });
    expect(rewrites(trimming, opening, spaced, [userMessage("and?")])).toBe(false);
  });

  test("sees an opened reasoning block vanish, with reasoning in the content", () => {
    const inline = assistantMessage({ content: "<think>\nGreet.\n</think>\n\nHi" });
    expect(rewrites(thinking, opening, inline, [userMessage("and?")])).toBe(true);
  });

  test("sees tools move in front of a newer message", () => {
    const plain = assistantMessage({ content: "Hi" });
    expect(rewrites(moving, opening, plain, [userMessage("and?")])).toBe(true);
  });
});
