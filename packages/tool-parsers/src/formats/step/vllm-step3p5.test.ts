import { describe, expect, test } from "vitest";
import { toolsFromOpenAi } from "../../tool-definition.ts";
import { parsePythonJson } from "../../../../python-values/src/index.ts";
import { step3p5 } from "./step3p5.ts";

const tools = toolsFromOpenAi(
  parsePythonJson(
    `[{"type": "function", "function": {"name": "find", "parameters": {"type": "object",
      "properties": {"query": {"type": "string"}, "limit": {"type": "number"},
      "tags": {"type": "array"}, "flag": {"type": "boolean"}}}}}]`,
  ),
  "tools",
);

function read(text: string): [content: string, ...calls: string[]] {
  const { compat } = step3p5.parse(text, { tools, dialect: "vllm" });
  return [compat.normalText, ...compat.calls.map((call) => call.name + call.argumentsText)];
}

function call(parameters: string): string {
  return `<tool_call>\n<function=find>\n${parameters}</function>\n</tool_call>`;
}

describe("vLLM's parser for Step-3.5", () => {
  test("writes values by their types", () => {
    const text = call(
      "<parameter=limit>\n2.0\n</parameter>\n<parameter=flag>\nyes\n</parameter>\n" +
        "<parameter=tags>\n['a', (1,)]\n</parameter>\n<parameter=query>\na < \"b\"\n</parameter>\n",
    );
    expect(read(text)).toEqual([
      "",
      String.raw`find{"limit": 2, "flag": false, "tags": ["a", [1]], "query": "a < \"b\""}`,
    ]);
  });

  test("leaves the arguments of a call that is cut off open", () => {
    expect(read("So: <tool_call>\n<function=find>\n<parameter=query>\nru")).toEqual([
      "So: ",
      'find{"query": "ru',
    ]);
  });

  test("writes null as an empty text", () => {
    expect(read(call("<parameter=limit>\nnull\n</parameter>\n"))).toEqual(["", 'find{"limit": }']);
  });

  test("reports text between calls when the later one ends, and drops text after the last call", () => {
    expect(read(`${call("")} and ${call("")} end`)).toEqual([" and ", "find{}", "find{}"]);
  });

  test("reads nothing after a control character", () => {
    const text = call("<parameter=query>\na\u0001b\n</parameter>\n<parameter=flag>\n");
    expect(read(text)).toEqual(["", 'find{"query": ""}']);
  });

  test("joins the arguments of two functions in one call under the second name", () => {
    const text = "<tool_call><function=find></function><function=other></function></tool_call>";
    expect(read(text)).toEqual(["", "other{}{}"]);
  });

  test("repairs a tag that is not closed", () => {
    expect(read(call("<parameter=query\nx</parameter>\n"))).toEqual(["", 'find{"query": "x"}']);
  });

  test("gives the same joined stream as for the complete text", () => {
    const text = `Before <b ${call("<parameter=query>\nx\n</parameter>\n")} after <tool`;
    const stream = step3p5.createStream({ tools, dialect: "vllm" });
    const events = [...[...text].flatMap((unit) => stream.push(unit)), ...stream.end()];
    const content = events.map((event) => (event.type === "text" ? event.text : "")).join("");
    expect(content).toBe(read(text)[0]);
    expect(events.at(-1)).toMatchObject({
      type: "end",
      result: { compat: step3p5.parse(text, { tools, dialect: "vllm" }).compat },
    });
  });
});
