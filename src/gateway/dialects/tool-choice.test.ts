import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { openAiToolTypes } from "./openai-tools.ts";
import { readFunctionCall, readMessagesChoice, readToolChoice } from "./tool-choice.ts";

type OpenAiChoice =
  | OpenAI.Chat.ChatCompletionToolChoiceOption
  | NonNullable<OpenAI.Responses.ResponseCreateParams["tool_choice"]>;

/** The names of the tool choices that are objects. */
type OpenAiChoiceType = Extract<OpenAiChoice, { readonly type: string }>["type"];

const look = { type: "function", name: "look" } as const;
const nested = { type: "function", function: { name: "look" } } as const;
const named = { type: "named", name: "look" };

const choices = "say auto, none or required, or name a tool by its type and its name";

describe("readToolChoice()", () => {
  test.each<[OpenAiChoice, object]>([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "required" }],
    [look, named],
    [nested, named],
    [{ type: "custom", name: "look" }, named],
    [{ type: "custom", custom: { name: "look" } }, named],
    [{ type: "apply_patch" }, { type: "named", name: "apply_patch" }],
    [{ type: "shell" }, { type: "named", name: "shell" }],
    [
      { type: "allowed_tools", mode: "required", tools: [look] },
      { type: "required", allowed: ["look"] },
    ],
    [
      {
        type: "allowed_tools",
        allowed_tools: { mode: "auto", tools: [nested, { type: "shell" }] },
      },
      { type: "auto", allowed: ["look", "shell"] },
    ],
    [
      { type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }, look] },
      { type: "auto", allowed: ["look"] },
    ],
  ])("reads %j", (choice, toolChoice) => {
    expect(readToolChoice(choice)).toEqual({ toolChoice, unsupported: [], ignoredFields: [] });
  });

  test("reads every type that the protocols' own clients can send", () => {
    // This line does not compile if a client's library has a type that the table lacks.
    const known: Record<Exclude<OpenAiChoiceType, "allowed_tools">, string> = openAiToolTypes;
    expect(Object.keys(known)).toContain("mcp");
  });

  test("flattens names of namespaced tools", () => {
    const { toolChoice } = readToolChoice({ ...look, namespace: "box" });
    expect(toolChoice).toEqual({ type: "named", name: "box__look" });
  });

  test.each<[object, object, string]>([
    [{ type: "file_search" }, { type: "auto" }, "tool_choice file_search"],
    [{ type: "mcp", server_label: "x" }, { type: "auto" }, "tool_choice mcp"],
    [
      { type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] },
      { type: "none" },
      "tool_choice allowed_tools auto",
    ],
  ])("reports that no server runs the tool of %j", (choice, toolChoice, what) => {
    const read = readToolChoice(choice);
    expect(read.toolChoice).toEqual(toolChoice);
    expect(read.unsupported.map((feature) => feature.what)).toEqual([what]);
  });

  test.each<[unknown, string]>([
    ["any", `tool_choice: there is no choice "any"; ${choices}`],
    [{ type: "added_2027" }, `tool_choice.type: there is no choice "added_2027"; ${choices}`],
    [
      { type: "allowed_tools", tools: [] },
      "tool_choice.mode: there is no choice undefined; say auto or required",
    ],
    [
      { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [] } },
      "tool_choice.allowed_tools.tools: no tool may be called; say none instead",
    ],
    [
      { type: "allowed_tools", mode: "auto", tools: [{ type: "added_2027" }] },
      'tool_choice.tools[0].type: there is no choice "added_2027"; name a tool by its type and its name',
    ],
    [{ type: "function" }, "tool_choice.name: expected text, not nothing"],
    [
      { type: "namespace", name: "box" },
      "tool_choice.type: a namespace cannot be chosen; name its tools",
    ],
  ])("refuses %j", (choice, problem) => {
    expect(() => readToolChoice(choice)).toThrow(`Cannot read ${problem}`);
  });
});

describe("readFunctionCall()", () => {
  test("reads `function_call`", () => {
    expect(readFunctionCall({ name: "look" }).toolChoice).toEqual(named);
    expect(readFunctionCall("none").toolChoice).toEqual({ type: "none" });
    expect(() => readFunctionCall("required")).toThrow(
      'Cannot read function_call: there is no choice "required"; say auto or none, or name a function',
    );
  });
});

describe("readMessagesChoice()", () => {
  test.each<[Anthropic.ToolChoice, object, boolean]>([
    [{ type: "auto" }, { type: "auto" }, true],
    [{ type: "auto", disable_parallel_tool_use: true }, { type: "auto" }, false],
    [{ type: "any", disable_parallel_tool_use: false }, { type: "required" }, true],
    [{ type: "tool", name: "look", disable_parallel_tool_use: true }, named, false],
    [{ type: "none" }, { type: "none" }, true],
  ])("reads %j", (choice, toolChoice, parallelCalls) => {
    expect(readMessagesChoice(choice)).toMatchObject({ toolChoice, parallelCalls });
  });

  test("refuses an unknown choice", () => {
    expect(() => readMessagesChoice({ type: "added_2027" })).toThrow(
      'Cannot read tool_choice.type: there is no choice "added_2027"; say auto, none, any or tool',
    );
  });
});
