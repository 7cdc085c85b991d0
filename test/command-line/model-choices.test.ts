import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modelFolder } from "../../src/tokenizer/real-tokenizers.fixture.ts";
import { callCli } from "../support/call-cli.ts";
import { smallModelEndId, smallModelFolder } from "../support/small-model.ts";
import { sampleTemplates } from "../../src/renderer/sample-templates.fixture.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-choices-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A model folder with Qwen's chat format and another chat template. */
async function writeModel(name: string, template: string): Promise<string> {
  const dir = path.join(scratch, name);
  await cp(smallModelFolder, dir, { recursive: true });
  await writeFile(path.join(dir, "chat_template.jinja"), template);
  return dir;
}

async function readCard(dir: string, more: readonly string[] = []) {
  const { status, stdout, stderr } = await callCli(["template", "--model", dir, ...more]);
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe("turnwright template", () => {
  test("shows the findings about a model folder", async () => {
    const card = await readCard(modelFolder("qwen3"));
    expect(card).toMatchObject({
      parser: "qwen25",
      reasoningParser: "qwen3",
      dialect: "sglang",
      engineVersion: "2026-08",
      ownCalls: "read",
      stopLiterals: ["<|im_end|>"],
      stopIds: [151645],
      deltaBase: "short",
    });
    expect(card).not.toHaveProperty("overrides");
    expect(card).not.toHaveProperty("variables");
  });

  test("ends with status 1 for a template that no agent can play with, and says why", async () => {
    const dir = await writeModel("unusable", "{{ messages | length }}");
    const { status, stdout, stderr } = await callCli(["template", "--model", dir]);
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ stopLiterals: [] });
    expect(stderr).toBe(
      `turnwright: Cannot play with the chat template of ${dir}: ` +
        "no control token ends a turn of the assistant\n",
    );
  });

  test("shows the user's choices in place of the findings", async () => {
    const card = await readCard(smallModelFolder, [
      "--parser",
      "hermes",
      "--reasoning-parser",
      "none",
      "--dialect",
      "vllm",
      "--stop-token",
      "<|endoftext|>",
      "--stop-token",
      String(smallModelEndId),
      "--delta-base",
      "full",
      "--template-variable",
      "enable_thinking=false",
    ]);
    expect(card).toMatchObject({
      parser: "hermes",
      reasoningParser: "none",
      dialect: "vllm",
      engineVersion: "0.24",
      stopIds: [2937, smallModelEndId],
      deltaBase: "full",
      variables: { enable_thinking: false },
      overrides: ["parser", "reasoningParser", "dialect", "stopIds", "deltaBase"],
    });
  });

  test("finds the variable that keeps reasoning, and leaves one alone that is set", async () => {
    const dir = await writeModel("clearing", sampleTemplates.clearing);
    expect(await readCard(dir)).toMatchObject({
      keepThinking: { variable: "clear_thinking", value: false },
    });
    const chosen = await readCard(dir, ["--template-variable", "clear_thinking=true"]);
    expect(chosen).not.toHaveProperty("keepThinking");
    expect(chosen["warnings"]).toContainEqual(
      expect.stringContaining("The template rewrites earlier turns"),
    );
  });

  test("renders as the release of transformers that is asked for, and says so", async () => {
    const newest = await readCard(smallModelFolder);
    expect(newest).toMatchObject({ transformers: "5.23" });
    expect(newest).not.toHaveProperty("overrides");
    const older = await readCard(smallModelFolder, ["--transformers", "5.20"]);
    expect(older).toMatchObject({ transformers: "5.20", overrides: ["transformers"] });
  });

  test.each([
    [["--transformers", "newest"], "Cannot render as transformers newest: expected a release"],
    [["--parser", "nonsense"], 'Cannot find tool-call parser "nonsense"'],
    [["--stop-token", "<|nonsense|>"], 'Cannot stop at "<|nonsense|>": expected a token'],
    [["--stop-token", "99999999"], "Cannot stop at 99999999: expected a token of the model"],
    [["--dialect", "vllm", "--engine-version", "2026-08"], "unknown engine version"],
    [["--dialect", "vllm", "--parser", "trinity"], "Cannot parse trinity as vllm"],
  ])("refuses %j", async (more, message) => {
    const { status, stderr } = await callCli(["template", "--model", smallModelFolder, ...more]);
    expect(stderr).toContain(message);
    expect(status).toBe(2);
  });
});

describe("turnwright rollout with a template that it cannot play with", () => {
  async function refuse(name: string, template: string, more: readonly string[] = []) {
    const { status, stdout, stderr } = await callCli([
      "rollout",
      "--url",
      "http://127.0.0.1:9",
      "--model",
      await writeModel(name, template),
      "--env",
      "storefront",
      "--user",
      "scripted",
      "--out",
      path.join(scratch, "never"),
      ...more,
    ]);
    expect(stdout).toBe("");
    expect(status).toBe(2);
    return stderr;
  }

  test("refuses one without a control token, for any parser", async () => {
    for (const more of [[], ["--parser", "qwen25"], ["--agent", "act"]]) {
      expect(await refuse("nonsense", "{{ messages|length }} messages", more)).toMatch(
        /Cannot play with the chat template of .*nonsense: no control token ends a turn/,
      );
    }
  });

  test("refuses one that ignores tool results, unless the agent needs none", async () => {
    const deaf = sampleTemplates.deaf.replaceAll("<|end|>", "<|im_end|>");
    expect(await refuse("deaf", deaf, ["--parser", "qwen25"])).toMatch(
      /Cannot play with .*deaf: it does not render tool results after a turn; --agent act/,
    );
  });

  test("refuses one with an unknown tool-call format", async () => {
    expect(await refuse("foreign", sampleTemplates.clearing)).toContain(
      "Cannot tell the tool-call parser from the chat template: name one with --parser",
    );
  });

  test("refuses a broken one, and unknown values of flags", async () => {
    expect(await refuse("broken", "{% for %}")).toMatch(/Cannot use the chat template .*line 1/);
    const fine = sampleTemplates.clearing;
    const named = ["--parser", "hermes"];
    expect(await refuse("fine", fine, [...named, "--repair-calls", "unknown-tool"])).toContain(
      "Cannot use --repair-calls unknown-tool: expected one of invalid-json, unclosed-block, ",
    );
    expect(await refuse("fine", fine, [...named, "--refuse-calls", "ok"])).toContain(
      "Cannot use --refuse-calls ok: expected one of schema-mismatch, duplicate-call, ",
    );
  });
});
