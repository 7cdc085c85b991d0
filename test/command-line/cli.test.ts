import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { qwen3Folder } from "../support/qwen3-model.ts";
import { callCli } from "../support/call-cli.ts";
import { cliFile, jsonLines, runCli } from "../support/run-cli.ts";
import { smallModelFolder } from "../support/small-model.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-cli-"));
  await writeFile(path.join(scratch, "broken.jinja"), "{% if x %}");
  await mkdir(path.join(scratch, "no-tokenizer"));
  const template = path.join(scratch, "no-tokenizer", "chat_template.jinja");
  await writeFile(template, "{{ messages }}");
  await writeFile(path.join(scratch, "typo.json"), '{"tasks": "0", "temprature": 1}');
  await writeFile(path.join(scratch, "kind.json"), '{"temperature": "hot"}');
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const unreachable = ["--url", "http://127.0.0.1:9", "--parser", "qwen25"];
const nowhere = [...unreachable, "--model", "/nowhere", "--user", "scripted"];
const shop = ["rollout", "--env", "storefront", "--user", "scripted", "--tasks", "0"];

describe("bad input gets one clear line on standard error and exit status 2", () => {
  test.each<[string, () => readonly string[], string]>([
    ["an unknown flag", () => ["rollout", "--bogus"], "unknown option '--bogus'"],
    ["an unknown command", () => ["bogus"], "unknown command 'bogus'"],
    ["no environment", () => ["rollout"], "Missing --env"],
    [
      "an unknown environment",
      () => ["rollout", "--env", "nope"],
      'Cannot find environment "nope"',
    ],
    [
      "an unknown split",
      () => ["rollout", "--env", "storefront", "--split", "dev", ...nowhere],
      'Cannot find split "dev" of storefront: expected one of train, test',
    ],
    [
      "a task out of range",
      () => ["rollout", "--env", "storefront", "--split", "test", "--tasks", "0-500", ...nowhere],
      'Cannot play task 500: split "test" has 200 tasks, expected 0 to 199',
    ],
    ["no user", () => ["rollout", "--env", "tau-retail", "--tasks", "0"], "Missing --user"],
    ["no engine", () => shop, "Missing --url"],
    [
      "a bundle that is none",
      () => ["rollout", "--env", "tau-retail", "--data", scratch, ...nowhere],
      "/retail/orders.json: expected a τ-bench bundle",
    ],
    [
      "a model folder that is absent",
      () => [...shop, ...unreachable, "--model", "/nowhere"],
      "Cannot load the model: /nowhere is absent",
    ],
    [
      "a model folder without a tokenizer",
      () => [...shop, ...unreachable, "--model", path.join(scratch, "no-tokenizer")],
      "/tokenizer.json: expected the file of a fast tokenizer",
    ],
    [
      "an engine that does not answer",
      () => [...shop, ...unreachable, "--model", smallModelFolder],
      "Cannot reach the engine at http://127.0.0.1:9",
    ],
    [
      "a user model without an address",
      () => ["rollout", "--env", "storefront", "--tasks", "0", "--user", "llm"],
      "Missing --user-url",
    ],
    [
      "a misspelled key of a configuration file",
      () => [...shop, "--config", path.join(scratch, "typo.json")],
      'Cannot use "temprature"',
    ],
    [
      "a value of the wrong kind in a configuration file",
      () => [...shop, "--config", path.join(scratch, "kind.json")],
      'Cannot use "temperature"',
    ],
    [
      "an unknown parser",
      () => ["parse", "--parser", "nope"],
      'Cannot find tool-call parser "nope"',
    ],
    [
      "a template that does not compile",
      () => ["render", "--template", path.join(scratch, "broken.jinja")],
      "Cannot compile the chat template",
    ],
    ["a file that is absent", () => ["verify", "/nowhere.jsonl"], "Cannot read /nowhere.jsonl"],
    ["samples below 1", () => [...shop, "--samples", "0"], "expected a whole number of at least 1"],
  ])("%s", async (_, args, message) => {
    const { status, stdout, stderr } = await callCli(args());
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stdout).toBe("");
    expect(status).toBe(2);
  });
});

/** A `parse` that runs. */
function openParse() {
  const child = spawn(process.execPath, [cliFile, "parse", "--parser", "qwen25"]);
  const ended = once(child, "exit").then(([status]) => status as number | null);
  // The command may be gone before it has read all.
  child.stdin.on("error", () => {});
  return { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, ended };
}

describe("commands answer lines in order, and a bad line does not stop the rest", () => {
  test("parse", async () => {
    const call =
      '<tool_call>\n{"name": "f", "arguments": {"a": 1.0, "10": 2, "2": 3}}\n</tool_call>';
    const lines = [
      JSON.stringify({
        id: "a",
        text: call,
        tools: [{ type: "function", function: { name: "f" } }],
      }),
      "{broken",
      '{"id": 7, "text": 5}',
      '{"id": 9007199254740993, "text": "hello", "tools": []}',
    ];
    const { status, stdout } = await runCli(["parse", "--parser", "qwen25"], {
      input: lines.join("\n"),
    });
    const answers = stdout.trimEnd().split("\n");
    expect(JSON.parse(answers[0]!)).toEqual({
      id: "a",
      normalText: "",
      calls: [{ name: "f", arguments: '{"a": 1.0, "10": 2, "2": 3}', toolIndex: 0 }],
      attempts: [
        {
          status: "ok",
          raw: call,
          span: [0, call.length],
          name: "f",
          argumentsText: '{"a": 1.0, "10": 2, "2": 3}',
        },
      ],
    });
    expect(JSON.parse(answers[1]!)).toMatchObject({ error: { code: "bad-json" } });
    expect(JSON.parse(answers[2]!)).toMatchObject({ id: 7, error: { code: "bad-line" } });
    expect(answers[3]).toBe(
      '{"id":9007199254740993,"normalText":"hello","calls":[],"attempts":[]}',
    );
    expect(status).toBe(1);
  });

  test("eval-metrics refuses a reward that is no finite number, and answers the other lines", async () => {
    const line = (reward: string) =>
      `{"id": "${reward}", "results": [{"task": 1, "trial": 0, "reward": ${reward}}]}`;
    const { status, stdout } = await runCli(["eval-metrics"], {
      input: ["NaN", "1e999", "1"].map(line).join("\n"),
    });
    const error = { code: "bad-line", message: '"results"[0].reward must be a finite number' };
    expect(
      stdout
        .trimEnd()
        .split("\n")
        .map((each) => JSON.parse(each) as unknown),
    ).toEqual([
      { id: "NaN", error },
      { id: "1e999", error },
      { id: "1", averageReward: 1, passHatK: { 1: 1 }, passAtK: { 1: 1 } },
    ]);
    expect(status).toBe(1);
  });

  test("a reader that goes away ends a command quietly", async () => {
    const { stdin, stdout, stderr, ended } = openParse();
    const text = "x".repeat(200_000);
    stdout.once("data", () => stdout.destroy());
    let complaints = "";
    stderr.setEncoding("utf8").on("data", (chunk: string) => (complaints += chunk));
    for (let line = 0; line < 20; line++) stdin.write(`${JSON.stringify({ text, tools: [] })}\n`);
    expect(await ended).toBe(141);
    expect(complaints).toBe("");
  });

  test("reason", async () => {
    const input = JSON.stringify({ id: 1, chunks: ["<think>a", "b</think>", "c"] });
    const { stdout, status } = await callCli(["reason", "--parser", "qwen3"], { input });
    expect(jsonLines(stdout)).toEqual([{ id: 1, reasoning: "ab", normalText: "c" }]);
    expect(status).toBe(0);
  });

  test("render", async () => {
    const messages = [{ role: "user", content: "hi <|im_end|>" }];
    const input = JSON.stringify({ id: 1, messages, addGenerationPrompt: true });
    const { stdout } = await callCli(["render", "--model", qwen3Folder()], { input });
    expect(jsonLines(stdout)).toEqual([
      {
        id: 1,
        text: "<|im_start|>user\nhi <|im_end|><|im_end|>\n<|im_start|>assistant\n",
        ids: [
          151644, 872, 198, 6023, 220, 27, 91, 318, 6213, 91, 29, 151645, 198, 151644, 77091, 198,
        ],
      },
    ]);
  });

  test("render with a template file, its variables and its clock", async () => {
    const file = path.join(scratch, "date.jinja");
    await writeFile(
      file,
      "{{ bos_token }}{{ strftime_now('%d %b %Y') }}{{ messages[0].content }}{{ 2.0 }}",
    );
    const input = JSON.stringify({
      id: 1,
      messages: [{ role: "user", content: "x" }],
      variables: { bos_token: "<s>" },
      now: "2026-11-21T08:00:00",
    });
    const { stdout } = await callCli(["render", "--template", file], { input });
    expect(jsonLines(stdout)).toEqual([{ id: 1, text: "<s>21 Nov 2026x2.0" }]);
  });

  test("delta", async () => {
    const line = {
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: "yo" },
      ],
      environment: [{ role: "user", content: "more" }],
    };
    const input = [
      JSON.stringify({ id: "closed", ...line, lastSampledId: 151645 }),
      JSON.stringify({ id: "cut", ...line, lastSampledId: 9707 }),
    ].join("\n");
    const { stdout } = await callCli(["delta", "--model", qwen3Folder()], { input });
    const text = "<|im_end|>\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n";
    const ids = [198, 151644, 872, 198, 6384, 151645, 198, 151644, 77091, 198];
    expect(jsonLines(stdout)).toEqual([
      { id: "closed", ids, text, closeSynthesised: false },
      { id: "cut", ids: [151645, ...ids], text, closeSynthesised: true },
    ]);
  });

  test("template", async () => {
    const { stdout } = await callCli(["template", "--model", qwen3Folder()]);
    expect(JSON.parse(stdout)).toMatchObject({
      stopLiterals: ["<|im_end|>"],
      stopIds: [151645],
      history: { afterTool: "append-only", afterUser: "rewrites" },
      deltaBase: "short",
    });
  });

  test("env list", async () => {
    const { stdout } = await callCli(["env", "list"]);
    expect(jsonLines(stdout)).toContainEqual(
      expect.objectContaining({ environment: "storefront", splits: { train: 100_000, test: 200 } }),
    );
  });
});
