import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { UsageError } from "../../errors.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { createMcpTools, type McpToolsOptions } from "./mcp-tools.ts";

const script = fileURLToPath(new URL("odd-mcp-server.fixture.mjs", import.meta.url));
const { signal } = new AbortController();
const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});

interface Page {
  readonly tools?: readonly unknown[] | null;
  readonly nextCursor?: unknown;
}

/** Opens the tools of a server with these pages, and returns the reports about them. */
async function open(pages: Readonly<Record<string, Page>>, options: Partial<McpToolsOptions> = {}) {
  const troubles: string[] = [];
  const tools = await createMcpTools({
    command: process.execPath,
    args: [script, JSON.stringify({ pages })],
    onTrouble: (trouble) => troubles.push(trouble.replace(/^MCP server [^:]*: /, "")),
    ...options,
  } as McpToolsOptions);
  opened.push(tools);
  return { tools, troubles, names: tools.map(({ name }) => name) };
}

/** Opens the tools of a server with one page. */
const openPage = async (...tools: readonly unknown[]) => await open({ first: { tools } });

/** The text that the agent reads after a call. */
async function observe(
  tools: Awaited<ReturnType<typeof open>>["tools"],
  name: string,
  args: string,
) {
  const environment = defineEnvironment({
    name: "world",
    tasks: [{ instruction: "Go." }],
    policy: "Use the tools.",
    tools,
    score: () => 1,
  });
  const task = environment.task("test", 0);
  const actions = [{ type: "call", name, arguments: parsePythonJson(args) as PyDict }] as const;
  const { user } = environment;
  const played = await playActions(environment, { task, user, actions }, { signal });
  return played.steps[0]?.observation;
}

const tool = (name: string, properties: object = {}, more: object = {}) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: "object", properties, ...more },
});
const plain = tool("plain", { a: { type: "number" } });

describe("each tool of an MCP server is independent", () => {
  test("a part of a schema that cannot be used is not checked, and is reported once", async () => {
    const { tools, names, troubles } = await openPage(
      plain,
      tool("odd", {
        link: { type: "string", pattern: "^http\\:\\/\\/" },
        twice: { type: "string", pattern: "^(.)\\1$" },
        kind: { type: "any" },
      }),
    );
    expect(names).toEqual(["plain", "odd"]);
    expect(troubles).toEqual([
      'a part of the schema of tool "odd" is not checked here, the server checks it: ' +
        'properties/twice/pattern is "^(.)\\\\1$" (it holds a back-reference), expected a pattern that ' +
        'JavaScript or Python reads and linear time allows; properties/kind/type is "any", expected one ' +
        "of string, boolean, integer, number, array, object, null, or a list of them",
    ]);
    const fits = '{"link":"http://a","twice":"ab","kind":1}';
    expect(await observe(tools, "odd", fits)).toBe(`odd ${fits}`);
    expect(await observe(tools, "odd", '{"link":"ftp://a"}')).toBe(
      'Error: link must match pattern "^http\\:\\/\\/" (odd takes link?, twice?, kind?)',
    );
    expect(troubles).toHaveLength(1);
  });

  test.each([
    ["none", undefined, { type: "object", properties: {} }],
    ["null", null, { type: "object", properties: {} }],
    ["an empty one", {}, { type: "object", properties: {} }],
    ["true", true, { type: "object", properties: {} }],
    ["no type", { properties: { a: {} } }, { type: "object", properties: { a: {} } }],
    ["a type that may be null", { type: ["object", "null"] }, { type: "object", properties: {} }],
    ["a type in capitals", { type: "OBJECT" }, { type: "object", properties: {} }],
    [
      "a draft alone",
      { $schema: "http://json-schema.org/draft-07/schema#" },
      { type: "object", properties: {} },
    ],
    [
      "null keywords",
      { type: "object", properties: null, required: null },
      { type: "object", properties: {}, required: null },
    ],
    [
      "alternatives",
      { anyOf: [{ type: "object" }] },
      { anyOf: [{ type: "object" }], type: "object", properties: {} },
    ],
  ])("a tool whose schema is %s is used", async (_, inputSchema, shown) => {
    const { tools, names, troubles } = await openPage({ name: "odd", inputSchema }, plain);
    expect(names).toEqual(["odd", "plain"]);
    expect(tools[0]?.callable.jsonSchema).toEqual(shown);
    expect(troubles).toEqual([]);
    expect(await observe(tools, "odd", "{}")).toBe("odd {}");
    expect(await observe(tools, "plain", '{"a": "x"}')).toBe(
      "Error: a must be number (plain takes a?)",
    );
  });

  test("an invalid tool is omitted and reported", async () => {
    const { names, troubles } = await openPage(
      plain,
      { name: "text", inputSchema: { type: "string" } },
      { description: "no name" },
      "no tool",
    );
    expect(names).toEqual(["plain"]);
    expect(troubles).toEqual([
      'a tool is left out: tool "text" takes no object (its schema is {"type":"string"}), expected {"type": "object", …}',
      "a tool is left out: an entry of its list has no name",
      "a tool is left out: an entry of its list is not an object",
    ]);
  });

  test("a description that is not a text is left out and reported", async () => {
    const described = [5, ["a", "b"], null, undefined, "Does it."].map((description, index) => {
      return { name: `t${index}`, description, inputSchema: { type: "object" } };
    });
    const { names, troubles } = await openPage(...described);
    expect(names).toEqual(["t0", "t1", "t2", "t3", "t4"]);
    expect(troubles).toEqual([
      'the description of tool "t0" is left out: it is 5, expected a text',
      'the description of tool "t1" is left out: it is ["a","b"], expected a text',
    ]);
  });

  test("a server without one tool that can be used says why", async () => {
    const error: unknown = await openPage({ name: "text", inputSchema: [] }).catch(
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).message).toContain(
      'it lists no tools that can be used: tool "text" takes no object (its schema is []), expected {"type": "object", …}',
    );
  });

  test("a result may have null for absent members", async () => {
    const { tools } = await openPage(tool("nulls"));
    expect(await observe(tools, "nulls", "{}")).toBe("nulls {}");
  });

  test("a schema that nests too deeply leaves its tool out", async () => {
    let deep: object = {};
    for (let depth = 0; depth < 1_000; depth++) deep = { not: deep };
    const { names, troubles } = await openPage(plain, tool("deep", { a: deep }));
    expect(names).toEqual(["plain"]);
    expect(troubles.join()).toContain(
      'a tool is left out: the schema of tool "deep" nests deeper than 400 levels',
    );
  });

  test("members that are not as the protocol has them are not read", async () => {
    const odd = {
      ...plain,
      description: null,
      title: null,
      annotations: null,
      outputSchema: { type: "array" },
    };
    const { tools, troubles } = await openPage(odd, tool("titled", {}));
    expect(tools[0]?.definition.openai.get("function")).toEqual(
      new Map<string, unknown>([
        ["name", "plain"],
        ["description", ""],
        [
          "parameters",
          parsePythonJson('{"type": "object", "properties": {"a": {"type": "number"}}}'),
        ],
      ]),
    );
    expect(troubles).toEqual([]);
  });

  test("a name that engines do not allow is written with _ for the model, and called by its own name", async () => {
    const { tools, names, troubles } = await openPage(
      tool("list/issues.all"),
      tool("höhe"),
      tool("list.issues.all"),
    );
    expect(names).toEqual(["list_issues_all", "h_he"]);
    expect(troubles).toEqual([
      'the model calls tool "list/issues.all" by the name list_issues_all: engines allow letters, digits, _ and -, at most 64',
      'the model calls tool "höhe" by the name h_he: engines allow letters, digits, _ and -, at most 64',
      'tool "list.issues.all" is left out: another one is called "list_issues_all" already, expected names of their own',
    ]);
    expect(await observe(tools, "list_issues_all", "{}")).toBe("list/issues.all {}");
  });

  test("of two tools with one name the first is used", async () => {
    const { names, troubles } = await openPage(plain, tool("plain"), plain);
    expect(names).toEqual(["plain"]);
    expect(troubles).toEqual([
      'tool "plain" is left out: another one is called "plain" already, expected names of their own',
    ]);
  });

  test("parameters may be called what JavaScript's objects have", async () => {
    const properties = JSON.parse(
      '{"constructor": {"type": "string"}, "__proto__": {"type": "number"}, "toString": {"type": "string"}}',
    ) as object;
    const { tools, troubles } = await openPage(tool("odd", properties, { required: ["toString"] }));
    expect(troubles).toEqual([]);
    const given = '{"toString":"x","__proto__":1}';
    expect(await observe(tools, "odd", given)).toBe(`odd ${given}`);
    expect(await observe(tools, "odd", "{}")).toBe(
      "Error: must have required property 'toString' (odd takes constructor?, __proto__?, toString)",
    );
  });

  test("arguments that take too many steps are passed on, and this is reported once", async () => {
    const { tools, troubles } = await openPage(tool("odd", { a: { pattern: "^x+$" } }));
    const given = JSON.stringify({ a: "x".repeat(500_000) });
    for (const _ of [1, 2]) expect(await observe(tools, "odd", given)).toContain("odd ");
    expect(troubles).toEqual([
      'arguments of tool "odd" were not checked here, the server checks them: it takes more than 1000000 steps',
    ]);
  });
});

describe("the pages of an MCP server's tools", () => {
  const one = tool("one");
  const two = tool("two");

  test.each<[string, Record<string, Page>, readonly string[]]>([
    ["two pages", { first: { tools: [one], nextCursor: "b" }, b: { tools: [two] } }, []],
    [
      "an empty cursor that is one",
      { first: { tools: [one], nextCursor: "" }, "": { tools: [two] } },
      [],
    ],
    ["null at the end", { first: { tools: [one, two], nextCursor: null } }, []],
    ["a last page without tools", { first: { tools: [one, two], nextCursor: "b" }, b: {} }, []],
    [
      "a last page whose tools are null",
      { first: { tools: [one, two], nextCursor: "b" }, b: { tools: null } },
      [],
    ],
    ["the same page for each cursor", { "*": { tools: [one, two], nextCursor: "" } }, []],
    [
      "a cursor that comes again after other tools",
      { first: { tools: [one], nextCursor: "a" }, a: { tools: [two], nextCursor: "a" } },
      [],
    ],
    [
      "a cursor that it refuses",
      { first: { tools: [one, two], nextCursor: "" } },
      [
        'the tools after the 2 that were read are missing: it refuses its own cursor "" (Invalid cursor)',
      ],
    ],
    [
      "a page of other things than tools",
      { first: { tools: [one, two], nextCursor: "b" }, b: { tools: { three: {} } as never } },
      [
        'the tools after the 2 that were read are missing: it has no page for its own cursor "b" (Invalid result for ' +
          'tools/list: [ { "expected": "array", "code": "invalid_type", "path": [ "tools" ], "message": "Invalid ' +
          'input: expected array, received object" } ])',
      ],
    ],
    [
      "a cursor that is not text",
      { first: { tools: [one, two], nextCursor: 2 } },
      ["the tools after the 2 that were read are missing: its cursor is 2, expected a text"],
    ],
  ])("%s", async (_, pages, reported) => {
    const { names, troubles } = await open(pages);
    expect(names).toEqual(["one", "two"]);
    expect(troubles).toEqual(reported);
  });
});
