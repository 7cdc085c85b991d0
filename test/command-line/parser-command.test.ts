import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { callCli } from "../support/call-cli.ts";

const flatTool = { type: "function", name: "f", parameters: { type: "object" } };
const tool = { type: "function", function: { name: "f" } };

async function answer(argv: string[], ...lines: object[]): Promise<Record<string, unknown>[]> {
  const input = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const { stdout } = await callCli(argv, { input });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe("turnwright parse", () => {
  test("returns the same for chunks as for the complete text", async () => {
    const text = 'a <tool_call>\n{"name": "f", "arguments": {"b": 1.0}}\n</tool_call> c';
    const [whole, chunked] = await answer(
      ["parse", "--parser", "hermes"],
      { text, tools: [tool] },
      { chunks: [...text], tools: [tool] },
    );
    expect(whole).toMatchObject({
      normalText: "a",
      calls: [{ name: "f", arguments: '{"b": 1.0}', toolIndex: 0 }],
    });
    expect(chunked).toEqual(whole);
  });

  test("reads by a model's own response template, as `turnwright reason` does", async () => {
    const file = path.join(await mkdtemp(path.join(tmpdir(), "turnwright-")), "template.json");
    const fields = {
      thinking: { open: "<t>", close: "</t>" },
      tool_calls: {
        open: "<c>",
        close: "</c>",
        content: "json",
        transform: { function: { name: "f", arguments: "{content}" } },
      },
    };
    await writeFile(file, JSON.stringify({ response_template: { start_anchor: "<a>", fields } }));
    const flags = ["--parser", "response_template", "--response-template", file];
    const [reasoned] = await answer(["reason", ...flags], { text: '<t>b</t>d<c>{"a": 1}</c>' });
    expect(reasoned).toMatchObject({ reasoning: "b", normalText: 'd<c>{"a": 1}</c>' });
    const text = reasoned?.["normalText"];
    const [parsed] = await answer(["parse", ...flags], { text, tools: [tool] });
    expect(parsed).toMatchObject({
      normalText: "d",
      calls: [{ name: "f", arguments: '{"a": 1}', toolIndex: 0 }],
    });
    await rm(path.dirname(file), { recursive: true });
  });

  test("reports streamed text that the complete text retracts", async () => {
    const text = "a <tool_call>b</tool_call> c";
    const [whole, chunked] = await answer(
      ["parse", "--parser", "qwen3_coder", "--dialect", "vllm"],
      { text, tools: [tool] },
      { chunks: ["a ", text.slice(2)], tools: [tool] },
    );
    expect(whole).toMatchObject({ normalText: " ca ", calls: [] });
    expect(chunked).toEqual({ ...whole, releasedText: "a c " });
  });

  test("takes tools in the shape of the Responses API, and what vectors record of the engine", async () => {
    const text = '<tool_call>{"name": "g", "arguments": {}}</tool_call>';
    const answers = await answer(
      ["parse", "--parser", "hermes"],
      { text: text.replace("g", "f"), tools: [flatTool] },
      { text, tools: [flatTool], env: { SGLANG_FORWARD_UNKNOWN_TOOLS: true } },
      { text, tools: [flatTool] },
    );
    expect(answers.map(({ calls }) => calls)).toEqual([
      [{ name: "f", arguments: "{}", toolIndex: 0 }],
      [{ name: "g", arguments: "{}", toolIndex: -1 }],
      [],
    ]);
  });

  test("refuses chunks that are not strings", async () => {
    const [line] = await answer(["parse", "--parser", "hermes"], { chunks: [1], tools: [] });
    expect(line).toMatchObject({ error: { code: "bad-line" } });
  });
});

test("turnwright reason returns the same for chunks as for the complete text", async () => {
  const text = "<think>a\n</think>\n\nb";
  const answers = await answer(["reason", "--parser", "qwen3"], { text }, { chunks: [...text] });
  expect(answers).toEqual([
    { reasoning: "a\n", normalText: "\n\nb" },
    { reasoning: "a\n", normalText: "\n\nb" },
  ]);
});

describe("flags that cannot be read by", () => {
  const config = "models/storefront-2m/tokenizer_config.json";

  test.each([
    [["parse", "--parser", "qwen25", "--engine-version", "9"], "unknown engine version"],
    [["parse", "--parser", "qwen25", "--dialect", "vllm"], "that engine has no such parser"],
    [["parse", "--parser", "response_template"], "none is given"],
    [["parse", "--parser", "beam", "--response-template", config], "it has no response_template"],
    [["reason", "--parser", "qwen3", "--engine-version", "9"], "unknown engine version"],
  ])("%j: said once, before any line is read", async (argv, message) => {
    const input = '{"text": "a"}\n{"text": "b"}\n';
    const { status, stdout, stderr } = await callCli(argv, { input });
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(message);
  });

  test("`turnwright reason` takes vLLM's releases", async () => {
    const flags = ["--parser", "qwen3", "--dialect", "vllm", "--engine-version", "0.33"];
    const answers = await answer(["reason", ...flags], { text: "<think>a</think>b" });
    expect(answers).toEqual([{ reasoning: "a", normalText: "b" }]);
  });
});
