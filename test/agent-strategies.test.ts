import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTauRetail, loadTauBenchBundle } from "../environments/tau-bench/index.ts";
import type { TauTaskData } from "../environments/tau-bench/index.ts";
import {
  createStorefront,
  demonstrate,
  createSeededRandom,
} from "../environments/storefront/index.ts";
import { groundTruthTurns } from "../src/cli/demo/ground-truth-turns.ts";
import { startSglangTestServer, type SglangTestServer } from "../src/testing/index.ts";
import { sessionScriptPolicy } from "../src/testing/policies/session-script-policy.ts";
import type { Task } from "../src/task.ts";
import { loadTokenCodec } from "../src/tokenizer/load-codec.ts";
import { qwen3Folder } from "./support/qwen3-model.ts";
import { smallModelFolder } from "./support/small-model.ts";
import { callCli } from "./support/call-cli.ts";
import { jsonLines } from "./support/run-cli.ts";
import { tauBenchBundle } from "../src/testing/shared-data.fixture.ts";

const taskCount = 6;

let scratch = "";
let examples = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-strategies-"));
  examples = path.join(scratch, "examples.jsonl");
  const rows = ["a", "b", "c"].map((text) => JSON.stringify({ messages_display: `user: ${text}` }));
  await writeFile(examples, `${rows.join("\n")}\n`);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/**
 * The turns of an agent that writes its actions as text, made from the turns of a tool-calling
 * agent.
 */
function asTextActions(turns: readonly string[]): readonly string[] {
  return turns.flatMap((turn) => {
    const calls = [...turn.matchAll(/<tool_call>\n(.*?)\n<\/tool_call>/gs)].map(([, json]) => json);
    const said = JSON.stringify({ name: "respond", arguments: { content: turn } });
    return (calls.length === 0 ? [said] : calls).map((json) => `Thought:\nNext.\nAction:\n${json}`);
  });
}

/** A server that samples these turns, by rollout. */
async function startServer(
  sessions: Readonly<Record<string, readonly string[]>>,
  modelDir: string,
): Promise<SglangTestServer> {
  const codec = await loadTokenCodec(modelDir);
  const encode = (text: string) => codec.encode(text);
  const encoded: Record<string, number[][]> = {};
  for (const [rolloutId, turns] of Object.entries(sessions)) {
    encoded[rolloutId] = await Promise.all(turns.map((text) => encode(`${text}<|im_end|>`)));
  }
  const script = {
    turnMarkerIds: await encode("<|im_start|>assistant\n"),
    sessions: encoded,
    otherwise: await encode("Goodbye!<|im_end|>"),
  };
  return await startSglangTestServer({ policy: sessionScriptPolicy(script) });
}

/** Plays the first tasks with flags, and checks that each is rewarded and each sample is right. */
async function expectRewarded(
  server: SglangTestServer,
  name: string,
  flags: readonly string[],
): Promise<Record<string, unknown>[]> {
  const out = path.join(scratch, name);
  const { status, stdout, stderr } = await callCli([
    "rollout",
    "--url",
    server.url,
    "--parser",
    "qwen25",
    "--user",
    "scripted",
    "--tasks",
    `0-${taskCount - 1}`,
    "--out",
    out,
    "--json",
    ...flags,
  ]);
  expect(stderr).toBe("");
  expect(status).toBe(0);
  expect(jsonLines(stdout).at(-1)).toMatchObject({
    outcomes: { completed: taskCount, truncated: 0, failed: 0 },
    rewardMean: 1,
    formatErrorCount: 0,
  });
  const verified = await callCli(["verify", path.join(out, "samples.jsonl")]);
  expect(jsonLines(verified.stdout)).toMatchObject([{ samples: taskCount, violations: [] }]);
  return jsonLines(await readFile(path.join(out, "episodes.jsonl"), "utf8"));
}

function systemMessages(episodes: readonly Record<string, unknown>[]): string[] {
  return episodes.map((row) => (row["messages"] as { content: string }[])[0]!.content);
}

describe("turnwright rollout with each agent on the built-in shop", () => {
  const environment = createStorefront();
  const tasks = Array.from({ length: taskCount }, (_, index) => environment.task("test", index));

  async function demonstrations(): Promise<Record<string, readonly string[]>> {
    const entries = tasks.map(async (task, seed) => {
      const { turns } = await demonstrate(task, { seed });
      return [`${task.id}#0`, turns.map(({ text }) => text)] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  test.each(["act", "react"])("%s earns what calling tools earns", async (agent) => {
    const sessions = Object.entries(await demonstrations()).map(
      ([id, turns]) => [id, asTextActions(turns)] as const,
    );
    await using server = await startServer(Object.fromEntries(sessions), smallModelFolder);
    const flags = [
      "--model",
      smallModelFolder,
      "--split",
      "test",
      "--env",
      "storefront",
      "--agent",
      agent,
    ];
    const episodes = await expectRewarded(server, agent, flags);
    for (const row of episodes) {
      const roles = (row["messages"] as { role: string }[]).map(({ role }) => role);
      expect(new Set(roles)).toEqual(new Set(["system", "user", "assistant"]));
    }
  });

  test("few-shot shows its examples, and calls tools", async () => {
    await using server = await startServer(await demonstrations(), smallModelFolder);
    const episodes = await expectRewarded(server, "few-shot", [
      "--model",
      smallModelFolder,
      "--split",
      "test",
      "--env",
      "storefront",
      "--agent",
      "few-shot",
      "--few-shot-file",
      examples,
      "--few-shot-examples",
      "2",
    ]);
    const shown = systemMessages(episodes).map((text) => text.slice(text.indexOf("\n\nExample 1")));
    for (const text of shown) {
      expect(text).toMatch(/^\n\nExample 1:\nuser: [abc]\n\nExample 2:\nuser: [abc]$/);
    }
    expect(new Set(shown).size).toBeGreaterThan(1);
  });
});

const bundle = tauBenchBundle();

describe.skipIf(bundle === null)("turnwright rollout with an agent on τ-bench retail", () => {
  test("react plays the tasks' own actions on the original's prompt", async () => {
    const data = bundle!;
    const environment = createTauRetail({ bundle: await loadTauBenchBundle(data) });
    const sessions = Array.from({ length: taskCount }, (_, index) => {
      const task: Task<TauTaskData> = environment.task("test", index);
      const random = createSeededRandom(`react/${index}`);
      const turns = groundTruthTurns(task.data, { random, mistakeRate: 0 });
      return [`${task.id}#0`, asTextActions(turns)] as const;
    });
    // Its texts are long in the words of a small shop.
    const model = qwen3Folder();
    await using server = await startServer(Object.fromEntries(sessions), model);
    const flags = [
      "--model",
      model,
      "--split",
      "test",
      "--env",
      "tau-retail",
      "--data",
      data,
      "--agent",
      "react",
    ];
    const [first] = systemMessages(await expectRewarded(server, "retail", flags));
    expect(first).toContain(`${environment.policyText}\n#Available tools\n[{"type": "function"`);
  });
});
