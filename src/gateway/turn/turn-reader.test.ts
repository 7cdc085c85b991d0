import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toolFromOpenAi } from "../../message.ts";
import { findReasoningParser } from "../../../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../../../packages/tool-parsers/src/registry.ts";
import { toPyValue } from "../../../packages/python-values/src/value.ts";
import type { ReplyEvent } from "../conversation.ts";
import { TurnReader } from "./turn-reader.ts";

const look = toolFromOpenAi(
  toPyValue({ type: "function", function: { name: "look", parameters: { type: "object" } } }),
  "the tool",
);

function reader(stops: readonly string[] = [], tools = [look]): TurnReader {
  let count = 0;
  return new TurnReader({
    formats: {
      parser: findToolCallParser("qwen25"),
      parseOptions: {},
      createReasoningStream: ({ opened }) =>
        findReasoningParser("qwen3").createStream({ forceReasoning: opened }),
    },
    tools,
    stops,
    reasoningOpened: true,
    ids: { mint: (prefix) => `${prefix}${count++}`, callPrefix: "call_" },
  });
}

const stopped = { finish: "stop" } as const;

const turn =
  "I think.</think>Let me look.\n" +
  '<tool_call>\n{"name": "look", "arguments": {"a":  1.0}}\n</tool_call>';

function readAll(read: TurnReader, text: string, size: number) {
  const events: ReplyEvent[] = [];
  for (let at = 0; at < text.length; at += size)
    events.push(...read.push(text.slice(at, at + size)));
  const before = events.length;
  events.push(...read.end({ finish: "stop" }));
  return { events, before };
}

describe("TurnReader", () => {
  test.each([1, 2, 3, 5, 1000])("reads the same parts for every chunk size (%i)", (size) => {
    const read = reader();
    const { events } = readAll(read, turn, size);
    expect(read.parts.map(({ type, text }) => [type, text])).toEqual([
      ["reasoning", "I think."],
      ["text", "Let me look."],
      ["call", '{"a": 1.0}'],
    ]);
    const joined = read.parts.map((_, index) =>
      events.flatMap((event) =>
        event.type === "part-delta" && event.index === index ? [event.text] : [],
      ),
    );
    expect(joined.map((texts) => texts.join(""))).toEqual(read.parts.map(({ text }) => text));
  });

  test("reads a call with empty arguments as a call without arguments", () => {
    const read = new TurnReader({
      formats: {
        parser: findToolCallParser("cohere_command4"),
        parseOptions: { dialect: "vllm" },
      },
      tools: [look],
      stops: [],
      reasoningOpened: false,
      ids: { mint: (prefix) => prefix, callPrefix: "call_" },
    });
    readAll(
      read,
      '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "look", "parameters": {}}]<|END_ACTION|>',
      5,
    );
    expect(read.parts.map(({ type, text }) => [type, text])).toEqual([["call", "{}"]]);
  });

  test("releases text and closed calls before the turn ends", () => {
    const { events, before } = readAll(reader(), turn, 1);
    const early = events
      .slice(0, before)
      .flatMap((each) => (each.type === "part-delta" ? [each.text] : []));
    expect(early.join("")).toBe('I think.Let me look.{"a": 1.0}');
  });

  test("releases a call when its block is closed, while the next is sampled", () => {
    const read = reader();
    const one = '<tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>';
    const events = read.push(`</think>Both.\n${one}\n<tool_call>\n{"name": "lo`);
    expect(events.flatMap((event) => (event.type === "part-end" ? [event.part.type] : []))).toEqual(
      ["text", "call"],
    );
    const rest = [...read.push('ok", "arguments": {}}\n</tool_call>'), ...read.end(stopped)];
    expect(rest.filter(({ type }) => type === "part-start")).toHaveLength(1);
    expect(read.parts.map(({ type, text }) => [type, text])).toEqual([
      ["text", "Both."],
      ["call", '{"a": 1}'],
      ["call", "{}"],
    ]);
  });

  test("never changes released events, for every chunking and continuation", () => {
    const block = (inner: string) => `<tool_call>\n${inner}\n</tool_call>`;
    const fragments = fc.array(
      fc.constantFrom(
        block('{"name": "look", "arguments": {"a": 1}}'),
        block('{"name": "look"}'),
        "\n",
        block('{"name": "other", "arguments": {}}'),
        block("5"),
        block("{"),
        "said ",
        " ",
        block('[{"name": "look", "arguments": {"b": 2}}]'),
        "<tool_call>",
        "</tool_call>",
        block('{"name": "look", "arguments": "x"}'),
        "<tool_call>\n",
        '{"name": "look"}',
      ),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(fragments, fc.integer({ min: 1, max: 40 }), (texts, size) => {
        const text = `</think>${texts.join("")}`;
        const [cut, whole] = [reader(), reader()];
        readAll(cut, text, size);
        readAll(whole, text, text.length);
        const shown = (read: TurnReader) =>
          read.parts.map((part) => [part.type, part.text, part.type === "call" ? part.name : ""]);
        expect(shown(cut)).toEqual(shown(whole));
        const { compat } = findToolCallParser("qwen25").parse(texts.join(""), { tools: [look] });
        const called = cut.parts.flatMap((part) => (part.type === "call" ? [part.text] : []));
        const wanted = compat.calls
          .map(({ argumentsText }) => argumentsText)
          .filter((argumentsText) => argumentsText.startsWith("{"));
        if (!compat.raises) expect(called).toEqual(wanted);
      }),
      { numRuns: 500 },
    );
  });

  test.each([1, 7, 1000])(
    "hands on the first call alone to a client that takes one (%i)",
    (size) => {
      let count = 0;
      const read = new TurnReader({
        formats: { parser: findToolCallParser("qwen25"), parseOptions: {} },
        tools: [look],
        stops: [],
        reasoningOpened: false,
        parallelCalls: false,
        ids: { mint: (prefix) => `${prefix}${count++}`, callPrefix: "call_" },
      });
      const calls = [1, 2, 3].map(
        (a) => `<tool_call>\n{"name": "look", "arguments": {"a": ${a}}}\n</tool_call>`,
      );
      const { events } = readAll(read, `Hm.\n${calls.join("\n")}`, size);
      expect(read.parts.map(({ type, text }) => [type, text])).toEqual([
        ["text", "Hm."],
        ["call", '{"a": 1}'],
      ]);
      expect(read.leftOutCount).toBe(2);
      expect(events.filter(({ type }) => type === "part-start")).toHaveLength(2);
      expect(read.attempts).toHaveLength(3);
    },
  );

  test("releases calls in their tools' forms, and as text if they do not fit", () => {
    const callForms = new Map([["look", "local-shell" as const]]);
    const read = new TurnReader({
      formats: { parser: findToolCallParser("qwen25"), parseOptions: {} },
      tools: [look],
      stops: [],
      reasoningOpened: false,
      callForms,
      ids: { mint: (prefix) => prefix, callPrefix: "call_" },
    });
    const call = (command: string) =>
      `<tool_call>\n{"name": "look", "arguments": {"command": ${command}}}\n</tool_call>`;
    readAll(read, `${call('["ls"]')}\n${call('"ls"')}`, 9);
    expect(read.parts).toMatchObject([
      { type: "call", id: "lsh_", form: "local-shell", text: '{"command": ["ls"]}' },
      { type: "text" },
    ]);
    expect(read.parts[1]!.text).toContain('{"command": "ls"}');
  });

  test("parses calls only if the request has tools", () => {
    const read = reader([], []);
    readAll(read, turn, 7);
    expect(read.parts.map(({ type }) => type)).toEqual(["reasoning", "text"]);
    expect(read.parts[1]!.text).toBe(turn.slice(turn.indexOf("Let")));
  });

  test("shows a call with arguments that are not an object as text", () => {
    const read = reader();
    const call = '<tool_call>\n{"name": "look", "arguments": "x"}\n</tool_call>';
    readAll(read, `</think>${call}`, 4);
    expect(read.parts.map(({ type }) => type)).toEqual(["text"]);
    expect(read.parts[0]!.text).toContain('"x"');
  });

  test("shows a turn that is only a broken call as text", () => {
    const broken = '<tool_call>\n{"name": "look", "arguments": {"a": ';
    for (const said of ["", "Hm.\n"]) {
      const read = reader();
      readAll(read, `</think>${said}${broken}`, 5);
      expect(read.parts.map(({ type, text }) => [type, text])).toEqual([
        ["text", said === "" ? broken : "Hm."],
      ]);
    }
  });

  test("cuts the text at a stop text in any chunking, and reports it", () => {
    for (const size of [1, 3, 100]) {
      const read = reader(["STOP", "Observation:"]);
      readAll(read, "</think>Do it.\nObservation: STOP", size);
      expect(read.parts.map(({ text }) => text)).toEqual(["Do it.\n"]);
      expect(read.stopText).toBe("Observation:");
    }
  });
});
