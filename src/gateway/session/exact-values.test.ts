import { describe, expect, test } from "vitest";
import { writeCompactJson } from "../../json/exact-json.ts";
import { ClientError } from "../client-error.ts";
import type { RequestedTurn, ToolSet } from "../conversation.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { FieldCache } from "./field-cache.ts";
import { RecentBodies } from "./recent-bodies.ts";
import { ToolCache } from "./tool-cache.ts";
import { parseEntry, writtenTools } from "./journal-entry.ts";

const schema =
  '{"type":"object","properties":{"10":{"maximum":18446744073709551615},"2":{"default":1.0,' +
  '"minimum":-1e-7},"a":{"enum":[9007199254740993,1,1.50,"\u2028é"]},"__proto__":{"type":"null"}}}';
/** The schema as Python's `json` prints it. */
const printed = schema.replace("-1e-7", "-1e-07").replace("1.50", "1.5");

const tools = {
  chat: `[{"type":"function","function":{"name":"f","description":"d","parameters":${schema}}}]`,
  responses: `[{"type":"function","name":"f","description":"d","parameters":${schema}}]`,
  messages: `[{"name":"f","description":"d","input_schema":${schema}}]`,
} as const;

const shown = `{"type":"function","function":{"name":"f","description":"d","parameters":${printed}}}`;

const user = '{"role":"user","content":"go"}';

function bodyOf(dialect: DialectName, items: readonly string[], toolsFirst = true): Buffer {
  const fields = ['"model":"m"', `"tools":${tools[dialect]}`];
  const list = `"${dialects[dialect].historyField}":[${items.join(", ")}]`;
  const all = toolsFirst ? [...fields, list] : [list, ...fields];
  return Buffer.from(`{${all.join(",")}}`);
}

function reader(dialect: DialectName): (bytes: Buffer) => RequestedTurn {
  const bodies = new RecentBodies(new FieldCache());
  const cache = new ToolCache();
  const recollection = {
    toolsOf: (name: DialectName, list: readonly unknown[], read: () => ToolSet) =>
      cache.find({ dialect: name, list }, read),
  };
  return (bytes) => {
    const found = bodies.recognise(dialects[dialect], bytes);
    return bodies.read(dialects[dialect], found, recollection);
  };
}

describe.each(["chat", "responses", "messages"] as const)("%s", (dialect) => {
  test.each([true, false])("a tool's schema keeps numbers and key order (%s)", (toolsFirst) => {
    const read = reader(dialect);
    for (const items of [[user], [user, user]]) {
      const requested = read(bodyOf(dialect, items, toolsFirst));
      expect(requested.tools.map(({ openai }) => writeCompactJson(openai))).toEqual([shown]);
    }
  });

  test("schemas that differ only in the form of a number are distinct", () => {
    const read = reader(dialect);
    const floats = bodyOf(dialect, [user]);
    const ints = Buffer.from(floats.toString().replace('"default":1.0', '"default":1'));
    expect(writeCompactJson(read(floats).tools[0]!.openai)).toContain('"default":1.0');
    expect(writeCompactJson(read(ints).tools[0]!.openai)).toContain('"default":1,');
  });

  test("half of a surrogate pair in text is refused with its path", () => {
    const body = bodyOf(dialect, [user, '{"role":"user","content":"a\\ud800"}']);
    const place = `${dialects[dialect].historyField}[1].content`;
    expect(() => reader(dialect)(body)).toThrow(
      `Cannot read ${place}: it contains half of a surrogate pair, which no prompt can contain`,
    );
  });

  test("half of a surrogate pair in a tool's schema is refused", () => {
    const body = bodyOf(dialect, [user]).toString().replace('"null"', '"\\udc00"');
    expect(() => reader(dialect)(Buffer.from(body))).toThrow(
      /Cannot read tools\[0\].*: it contains half of a surrogate pair, which no prompt can contain/,
    );
  });

  test.each([
    ["invalid UTF-8", [0x22, 0xff, 0x22]],
    ["an overlong form", [0x22, 0xc0, 0xaf, 0x22]],
    ["a surrogate's bytes", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["a byte order mark", [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
    ["UTF-16", [0xff, 0xfe, 0x7b, 0x00]],
    ["NaN", [...Buffer.from('{"temperature":NaN}')]],
  ])("a body with %s is refused", (_, bytes) => {
    expect(() => reader(dialect)(Buffer.from(bytes))).toThrow(ClientError);
  });
});

const input = '{"x":1.0,"10":[9007199254740993],"2":-0.0,"a":1e2}';
const asPython = '{"x":1.0,"10":[9007199254740993],"2":-0.0,"a":100.0}';

test.each([
  [
    "messages",
    `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":${input}}]}`,
  ],
  [
    "chat",
    `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":${input}}}]}`,
  ],
] as const)("arguments that %s sends as an object keep their exact values", (dialect, call) => {
  const read = reader(dialect);
  for (const items of [
    [user, call, user],
    [user, call, user, call, user],
  ]) {
    const calls = read(bodyOf(dialect, items)).messages.flatMap((message) =>
      message.role === "assistant" ? message.calls : [],
    );
    expect(new Set(calls.map(({ argumentsText }) => argumentsText))).toEqual(new Set([asPython]));
  }
});

test("arguments keep their exact values in a body with repeated messages", () => {
  const call = '{"type":"tool_use","id":"c","name":"f","input":{"n":9007199254740993}}';
  const items = `{"role":"assistant","content":[${call}]},{"role":"user","content":"go"}`;
  const requested = reader("messages")(Buffer.from(`{"messages":[],"messages":[${items}]}`));
  expect(requested.messages[0]).toMatchObject({
    calls: [{ argumentsText: '{"n":9007199254740993}' }],
  });
});

test("the journal keeps the exact values of a root's tools", () => {
  const { tools: read } = reader("chat")(bodyOf("chat", [user]));
  expect(writtenTools(read)).toBe(`[${shown}]`);
  const entry = {
    type: "turn",
    sessionId: "s",
    index: 0,
    key: { environment: "", holdsAssistant: false },
    tools: writtenTools(read),
    parts: [],
    requestCount: 1,
    record: {
      replyId: "r",
      environment: [],
      prompt: { type: "root", ids: [1] },
      generation: { outputIds: [], logprobs: [], pieces: [] },
    },
  };
  expect(parseEntry(JSON.stringify(entry))).toEqual(entry);
});
