import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  ownTemplates,
  readOwnTemplates,
  readPublishedTemplates,
  type NamedTemplate,
} from "./chat-templates.fixture.ts";
import { sharedData } from "../testing/shared-data.fixture.ts";
import { UsageError } from "../errors.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict, PyList } from "../../packages/python-values/src/value.ts";
import type { ChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import { TemplateError } from "../../packages/chat-template/src/template-error.ts";

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

/** Templates by name, conversations, and Python's output for each pair. */
interface Recording {
  readonly templates: ReadonlyMap<string, string>;
  readonly conversations: PyDict;
  readonly expected: Readonly<Record<string, Readonly<Record<string, Outcome>>>>;
}

function sourcesOf(templates: readonly NamedTemplate[]): ReadonlyMap<string, string> {
  return new Map(templates.map(({ name, source }) => [name, source]));
}

/** The recordings of `test/templates/record.py`. */
function ownRecording(): Recording {
  const read = (name: string) => readFileSync(path.join(ownTemplates, name), "utf8");
  return {
    templates: sourcesOf(readOwnTemplates()),
    conversations: parsePythonJson(read("conversations.json")) as PyDict,
    expected: JSON.parse(read("expected.json")),
  };
}

/** The same program's recordings of published templates, which this repository does not contain. */
function publishedRecording(): Recording {
  const shared = sharedData();
  if (shared === null) return { templates: new Map(), conversations: new Map(), expected: {} };
  const read = (name: string) => readFileSync(path.join(shared, "data/chat-templates", name));
  return {
    templates: sourcesOf(readPublishedTemplates()),
    conversations: parsePythonJson(read("conversations.json").toString("utf8")) as PyDict,
    expected: JSON.parse(gunzipSync(read("expected.json.gz")).toString("utf8")),
  };
}

describe.each([
  ["templates in this repository", ownRecording(), { cells: 240, texts: 225 }],
  ["published templates", publishedRecording(), { cells: 2480, texts: 2121 }],
])("%s render as in Python", (_, { templates, conversations, expected }, counts) => {
  const names = Object.keys(expected);
  test.skipIf(names.length === 0).each(names.length === 0 ? ["none"] : names)("%s", (name) => {
    expect(outcomeOf(templates.get(name) ?? "", conversations)).toEqual(expected[name]);
  });

  test.skipIf(names.length === 0)("every cell was recorded: a text, or why Python raised", () => {
    const cells = Object.values(expected).flatMap((outcomes) => Object.values(outcomes));
    expect({
      cells: cells.length,
      texts: cells.filter((cell) => "out" in cell).length,
    }).toEqual(counts);
  });
});
