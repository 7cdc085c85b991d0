import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { sharedData } from "../testing/shared-data.fixture.ts";
import { UsageError } from "../errors.ts";
import { parsePythonJson } from "../python/json/json-parse.ts";
import type { PyDict, PyList } from "../python/value.ts";
import type { ChatTemplate } from "./chat-template.ts";
import { compileChatTemplate } from "./chat-template.ts";
import { TemplateError } from "./template-error.ts";

const shared = sharedData();

/** The text that jinja2 3.1.6 rendered, or the exception's name and message. */
type Outcome = { readonly out: string } | { readonly err: string };

const specialTokens: PyDict = new Map([
  ["bos_token", "<s>"],
  ["eos_token", "</s>"],
  ["pad_token", "<pad>"],
  ["unk_token", "<unk>"],
]);

function render(template: ChatTemplate, conversation: PyDict): Outcome {
  const variables = new Map([...specialTokens, ...conversation]);
  for (const name of ["messages", "tools", "add_generation_prompt"]) variables.delete(name);
  try {
    const out = template.render({
      messages: conversation.get("messages") as PyList,
      tools: (conversation.get("tools") ?? null) as PyList | null,
      addGenerationPrompt: conversation.get("add_generation_prompt") === true,
      variables,
      now: new Date(2026, 10, 21, 8, 0, 0),
    });
    return { out };
  } catch (error) {
    if (error instanceof TemplateError) {
      return { err: `${error.kind}: ${error.message}` };
    }
    throw error;
  }
}

function outcomeOf(source: string, conversations: PyDict): Record<string, Outcome> {
  let template: ChatTemplate;
  try {
    template = compileChatTemplate(source);
  } catch (error) {
    if (error instanceof UsageError) return { __compile__: { err: error.message } };
    throw error;
  }
  const outcomes = [...conversations].map(
    ([name, conversation]) => [name, render(template, conversation as PyDict)] as const,
  );
  return Object.fromEntries(outcomes);
}

describe.skipIf(shared === null)("real chat templates render as in Python", () => {
  const folder = path.join(shared ?? "", "data/chat-templates");
  const conversations =
    shared === null
      ? new Map()
      : (parsePythonJson(readFileSync(path.join(folder, "conversations.json"), "utf8")) as PyDict);
  const expected: Record<string, Record<string, Outcome>> = shared === null
    ? {}
    : JSON.parse(gunzipSync(readFileSync(path.join(folder, "expected.json.gz"))).toString("utf8"));

  test.each(Object.keys(expected))("%s", (name) => {
    const source = readFileSync(path.join(folder, `${name}.jinja`), "utf8");
    expect(outcomeOf(source, conversations)).toEqual(expected[name]);
  });

  test("every cell was recorded: a text, or why Python raised", () => {
    const cells = Object.values(expected).flatMap((outcomes) => Object.values(outcomes));
    expect({
      cells: cells.length,
      texts: cells.filter((cell) => "out" in cell).length,
    }).toEqual({ cells: 2480, texts: 2121 });
  });
});
