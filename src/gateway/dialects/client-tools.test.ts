import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { toolParameters } from "../../message.ts";
import { toPlainJson } from "../../../packages/python-values/src/value.ts";
import { ClientError } from "../client-error.ts";
import { anthropicToolTypes, type AnthropicToolType } from "./anthropic-tools.ts";
import type { RequestedTurn } from "../conversation.ts";
import type { DialectName } from "./dialect.ts";
import { openAiToolTypes, type OpenAiToolType } from "./openai-tools.ts";
import { askedFor } from "./sample-reply.fixture.ts";
import { dialects } from "./registry.ts";

/** Reads the tools of a request. */
function read(dialect: DialectName, tools: readonly unknown[], more: object = {}) {
  const requested = askedFor(dialects[dialect], { tools, ...more });
  return {
    names: requested.tools.map(({ name }) => name),
    forms: Object.fromEntries(requested.callForms),
    unsupported: requested.unsupported.map(({ what }) => what),
    ignored: requested.ignoredFields,
    schemas: requested.tools.map((tool) =>
      JSON.parse(JSON.stringify(toPlainJson(toolParameters(tool)!))),
    ),
  };
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof ClientError) return error.message;
    throw error;
  }
  throw new Error("nothing was refused");
}

/** Every type of tool that OpenAI's and Anthropic's own clients can send. */
type OpenAiWireType = OpenAI.Responses.Tool["type"] | OpenAI.Chat.ChatCompletionTool["type"];
type AnthropicWireType = Exclude<
  Anthropic.Beta.BetaToolUnion["type"] | Anthropic.ToolUnion["type"],
  "custom" | null | undefined
>;

describe("the tables of tools", () => {
  test("contain every type that the protocols' own clients can send", () => {
    // These lines do not compile if a client's library has a type that the tables lack.
    const openAi: Record<OpenAiWireType, string> = openAiToolTypes;
    const anthropic: Record<AnthropicWireType, unknown> = anthropicToolTypes;
    expect(Object.keys(openAi)).toContain("custom");
    expect(Object.keys(anthropic)).toContain("bash_20250124");
  });

  test("do not compile if a protocol gains a type", () => {
    // @ts-expect-error The table lacks the member.
    const openAi: Record<OpenAiToolType | "added_2027", string> = openAiToolTypes;
    // @ts-expect-error The table lacks the member.
    const anthropic: Record<AnthropicToolType | "added_2027", unknown> = anthropicToolTypes;
    expect([openAi, anthropic].map((table) => "added_2027" in table)).toEqual([false, false]);
  });

  test.each<[DialectName, object, string]>([
    [
      "responses",
      { type: "added_2027" },
      'type: there is no tool of type "added_2027"; give it as a function with a JSON Schema',
    ],
    [
      "chat",
      { type: "added_2027" },
      'type: there is no tool of type "added_2027"; give it as a function with a JSON Schema',
    ],
    [
      "chat",
      { type: "local_shell" },
      'type: there is no tool of type "local_shell"; give it as a function with a JSON Schema',
    ],
    [
      "chat",
      { name: "look" },
      "type: there is no tool of type undefined; give it as a function with a JSON Schema",
    ],
    [
      "messages",
      { type: "bash_20991231", name: "bash" },
      'type: there is no tool of type "bash_20991231"; give it an input_schema',
    ],
    [
      "messages",
      { type: "constructor", name: "bash" },
      'type: there is no tool of type "constructor"; give it an input_schema',
    ],
    [
      "messages",
      { type: "computer_toolset_20260801" },
      "type: computer_toolset_20260801 names no tools; give each of its tools with an input_schema",
    ],
    ["responses", { type: "computer" }, "type: policies here cannot read pictures of a screen"],
    [
      "responses",
      { type: "tool_search", execution: "client" },
      "execution: tools cannot be looked up later; give all of them in the request",
    ],
    [
      "responses",
      { type: "custom", name: "x", format: { type: "regex" } },
      'format.type: there is no format "regex"',
    ],
    [
      "responses",
      { type: "shell", environment: { type: "moon" } },
      'environment.type: there is no environment "moon"',
    ],
  ])("%s refuses %j", (dialect, tool, problem) => {
    expect(refusal(() => read(dialect, [tool]))).toBe(`Cannot read tools[0].${problem}`);
  });

  test("refuse two tools of one name that the client could not distinguish", () => {
    const look = { type: "function", name: "box__look" };
    const inBox = { type: "namespace", name: "box", tools: [{ ...look, name: "look" }] };
    const problem = 'a tool of another type or namespace has the name "box__look"';
    expect(refusal(() => read("responses", [look, { ...look, type: "custom" }]))).toBe(
      `Cannot read tools[1].name: ${problem}`,
    );
    expect(refusal(() => read("responses", [look, inBox]))).toBe(
      `Cannot read tools[1].tools[0].name: ${problem}`,
    );
    expect(read("responses", [look, look]).names).toEqual(["box__look", "box__look"]);
  });
});

describe("server tools", () => {
  test("are left out and recorded", () => {
    const look = { type: "function", name: "look", parameters: { type: "object" } };
    const server = [
      "web_search",
      "file_search",
      "code_interpreter",
      "image_generation",
      "mcp",
      "tool_search",
      "programmatic_tool_calling",
      "web_search_preview_2025_03_11",
    ];
    const seen = read("responses", [...server.map((type) => ({ type })), look]);
    expect(seen.names).toEqual(["look"]);
    expect(seen.unsupported).toEqual(server.map((type) => `tool ${type}`));
    const container = { type: "shell", environment: { type: "container_auto" } };
    expect(read("responses", [container])).toMatchObject({
      names: [],
      unsupported: ["tool shell in a container"],
    });
    const search = { type: "web_search_20250305", name: "web_search", max_uses: 3 };
    expect(read("messages", [search, { type: "mcp_toolset", mcp_server_name: "x" }])).toMatchObject(
      {
        names: [],
        unsupported: ["tool web_search_20250305", "tool mcp_toolset"],
      },
    );
  });
});

describe("client tools without a schema", () => {
  test("of Responses get a schema", () => {
    const seen = read("responses", [
      { type: "custom", name: "apply_diff", description: "Edits files.", format: { type: "text" } },
      { type: "local_shell" },
      { type: "shell", environment: { type: "local" } },
      { type: "apply_patch" },
      { type: "namespace", name: "box", tools: [{ type: "custom", name: "say" }] },
    ]);
    expect(seen.names).toEqual(["apply_diff", "local_shell", "shell", "apply_patch", "box__say"]);
    expect(seen.forms).toEqual({
      apply_diff: "custom",
      local_shell: "local-shell",
      shell: "shell",
      apply_patch: "apply-patch",
      box__say: "custom",
    });
    expect(seen.unsupported).toEqual([]);
    const description = "The whole input of the tool, as plain text.";
    expect(seen.schemas[0]).toEqual({
      type: "object",
      properties: { input: { type: "string", description } },
      required: ["input"],
      additionalProperties: false,
    });
    expect(seen.schemas[1]).toMatchObject({ required: ["command"] });
  });

  test("of Chat Completions get a schema with the grammar", () => {
    const grammar = { syntax: "lark", definition: "start: /a+/" };
    const custom = { name: "letters", format: { type: "grammar", grammar } };
    const seen = read("chat", [{ type: "custom", custom }]);
    expect(seen).toMatchObject({
      names: ["letters"],
      forms: { letters: "custom" },
      unsupported: ["grammar of custom tools"],
    });
    expect(seen.schemas[0]).toMatchObject({
      properties: {
        input: {
          description:
            "The whole input of the tool, as plain text. It must match this lark grammar:\nstart: /a+/",
        },
      },
    });
    const flat = { type: "custom", name: "letters", format: { type: "grammar", ...grammar } };
    expect(read("responses", [flat]).schemas).toEqual(seen.schemas);
  });

  test("in `functions` of Chat Completions are shown, with one call a turn", () => {
    const old = { name: "look", parameters: { type: "object", properties: { a: {} } } };
    const requested = askedFor(dialects.chat, {
      functions: [old],
      function_call: { name: "look" },
    });
    expect(requested.tools.map(({ name }) => name)).toEqual(["look"]);
    expect(requested).toMatchObject({
      toolChoice: { type: "named", name: "look" },
      parallelCalls: false,
    });
    expect([...requested.callForms]).toEqual([["look", "function-call"]]);
  });

  test("in both fields of Chat Completions: `tools` are shown and `functions` counted", () => {
    const look = { name: "look", parameters: { type: "object" } };
    const tools = [{ type: "function", function: look }];
    const more = { functions: [look], function_call: "none" };
    const seen = read("chat", tools, more);
    expect(seen).toMatchObject({ names: ["look"], forms: {}, unsupported: ["functions"] });
    expect(askedFor(dialects.chat, { tools, ...more }).toolChoice).toEqual({ type: "auto" });
  });

  const typed = [
    ["bash_20250124", "bash", ["command", "restart"], []],
    ["text_editor_20250124", "str_replace_editor", ["insert_line"], ["command", "path"]],
    ["text_editor_20250728", "str_replace_based_edit_tool", ["insert_text"], ["command", "path"]],
    ["memory_20250818", "memory", ["old_path"], ["command"]],
    ["computer_20251124", "computer", ["region"], ["action"]],
  ] as const;

  test.each(typed)("of Messages: %s", (type, name, members, required) => {
    const seen = read("messages", [{ type, name }]);
    expect(seen).toMatchObject({ names: [name], forms: {}, unsupported: [], ignored: [] });
    expect(seen.schemas[0]).toMatchObject({ required });
    for (const member of members) expect(seen.schemas[0].properties).toHaveProperty(member);
  });

  test("of Messages keep a given schema, and describe their settings", () => {
    const own = { type: "object", properties: { x: {} } };
    const given = { type: "bash_20250124", name: "bash", input_schema: own };
    expect(read("messages", [given]).schemas).toEqual([own]);
    const screen = { type: "computer_20250124", name: "computer", display_width_px: 1024 };
    const { tools, ignoredFields } = askedFor(dialects.messages, { tools: [screen] });
    expect(JSON.stringify(toPlainJson(tools[0]!.openai))).toContain("1024 pixels wide");
    expect(ignoredFields).toEqual([]);
  });
});

describe("request members without effect", () => {
  test("are recorded with their paths", () => {
    const look = { name: "look", input_schema: {}, defer_loading: true, cache_control: {} };
    expect(
      askedFor(dialects.messages, {
        tools: [look, look],
        tool_choice: { type: "auto", reason: "x" },
        output_config: { effort: "high" },
        thinking: { type: "adaptive" },
      }).ignoredFields,
    ).toEqual(["thinking", "tools[].defer_loading", "tool_choice.reason", "output_config.effort"]);
    const strict = { type: "function", function: { name: "look", strict: true, x: 1 } };
    const chat = askedFor(dialects.chat, {
      tools: [strict],
      stream_options: { include_obfuscation: true },
      audio: {},
      response_format: { type: "text", grammar: "x" },
    });
    expect(chat.ignoredFields).toEqual([
      "audio",
      "tools[].function.x",
      "stream_options.include_obfuscation",
      "response_format.grammar",
    ]);
    expect(chat.unsupported.map(({ what }) => what)).toEqual(["strict tools"]);
    const responses = askedFor(dialects.responses, {
      reasoning: { effort: "high" },
      text: { verbosity: "low" },
      truncation: "auto",
      include: ["file_search_call.results", "reasoning.encrypted_content"],
      store: true,
      top_logprobs: 2,
    });
    expect(responses.ignoredFields).toEqual([
      "reasoning",
      "text.verbosity",
      "include file_search_call.results",
    ]);
    expect(responses.unsupported.map(({ what }) => what)).toEqual(["top_logprobs", "truncation"]);
  });

  test("have no effect in another protocol either", () => {
    const format = { type: "json_object" };
    const features = { stop: ["x"], response_format: format };
    const what = ({ unsupported }: RequestedTurn) => unsupported.map((feature) => feature.what);
    expect(what(askedFor(dialects.responses, features))).toEqual(["stop", "response_format"]);
    expect(what(askedFor(dialects.messages, { ...features, parallel_tool_calls: false }))).toEqual([
      "stop",
      "response_format",
      "parallel_tool_calls",
    ]);
    const defaults = { parallel_tool_calls: true, stop: [], instructions: "" };
    expect(what(askedFor(dialects.messages, defaults))).toEqual([]);
    expect(what(askedFor(dialects.chat, { stop_sequences: ["x"] }))).toEqual(["stop_sequences"]);
  });

  test.each<[DialectName, object, string]>([
    [
      "chat",
      { response_format: { type: "regex" } },
      'response_format.type: there is no format of type "regex"; give a schema as json_schema, or no format',
    ],
    [
      "responses",
      { text: { format: { type: "grammar" } } },
      'text.format.type: there is no format of type "grammar"; give a schema as json_schema, or no format',
    ],
    [
      "messages",
      { output_format: { type: "xml" } },
      'output_format.type: there is no format of type "xml"; give a schema as json_schema, or no format',
    ],
    [
      "chat",
      { tools: [{ type: "function", function: { name: "look", input_schema: {} } }] },
      "tools[0].function.input_schema: give the tool's schema in parameters",
    ],
    [
      "responses",
      { tools: [{ type: "function", name: "look", inputSchema: {} }] },
      "tools[0].inputSchema: give the tool's schema in parameters",
    ],
    [
      "messages",
      { tools: [{ name: "look", parameters: {} }] },
      "tools[0].parameters: give the tool's schema in input_schema",
    ],
    ["responses", { background: "yes" }, "background: expected true or false"],
    ["chat", { parallel_tool_calls: "no" }, "parallel_tool_calls: expected true or false"],
    ["chat", { top_logprobs: "3" }, "top_logprobs: expected a whole number from 0 on"],
  ])("%s refuses %j", (dialect, more, problem) => {
    expect(refusal(() => askedFor(dialects[dialect], more as Record<string, unknown>))).toBe(
      `Cannot read ${problem}`,
    );
  });
});
