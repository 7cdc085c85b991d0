import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTauRetail, loadTauBenchBundle } from "../environments/tau-bench/index.ts";
import { createStorefront } from "../environments/storefront/index.ts";
import { scriptSessions } from "../src/cli/demo/session-scripts.ts";
import type { Environment } from "../src/environment/environment.ts";
import { planRun } from "../src/run/schedule/plan-run.ts";
import {
  sessionScriptPolicy,
  type SessionScripts,
} from "../src/testing/policies/session-script-policy.ts";
import {
  createSeededPolicy,
  spawnTestServer,
  startSglangTestServer,
  type ServerFault,
} from "../src/testing/index.ts";
import { loadTokenCodec } from "../src/tokenizer/load-codec.ts";
import { qwen3Folder } from "./support/qwen3-model.ts";
import { callCli } from "./support/call-cli.ts";
import { cliFile, jsonLines, runCli } from "./support/run-cli.ts";
import { smallModelFolder } from "./support/small-model.ts";
import { startChatCompletionsServer } from "../src/engine/chat/chat-completions-server.fixture.ts";
import { tauBenchBundle } from "../src/testing/shared-data.fixture.ts";

const policyModule = fileURLToPath(
  new URL("../dist/src/testing/policies/session-script-policy.js", import.meta.url),
);
const foundBundle = tauBenchBundle();
const bundle = foundBundle ?? "";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-rollout-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** The size of the run, and its settings. */
interface Scope {
  readonly taskCount: number;
  readonly sampleCount: number;
}

/** The turns that solve each task, for a server to sample. */
async function solutions(environment: Environment, scope: Scope): Promise<SessionScripts> {
  const plan = planRun(environment, {
    split: "test",
    taskIndexes: Array.from({ length: scope.taskCount }, (_, index) => index),
    sampleCount: scope.sampleCount,
    seed: 0,
  });
  const codec = await loadTokenCodec(modelOf(environment.name));
  return await scriptSessions(plan, { environment, codec, mistakeRate: 0 });
}

/** τ-bench's texts are long in the words of a small shop. */
function modelOf(environment: string): string {
  return environment === "storefront" ? smallModelFolder : qwen3Folder();
}

function rolloutArgs(
  server: { readonly url: string },
  environment: string,
  { out, more }: { readonly out: string; readonly more: readonly string[] },
): string[] {
  return [
    "rollout",
    "--url",
    server.url,
    "--model",
    modelOf(environment),
    "--parser",
    "qwen25",
    "--split",
    "test",
    "--env",
    environment,
    "--user",
    "scripted",
    "--out",
    out,
    ...more,
  ];
}

async function readSamples(out: string): Promise<Record<string, unknown>[]> {
  return jsonLines(await readFile(path.join(out, "samples.jsonl"), "utf8"));
}

describe.skipIf(foundBundle === null)("turnwright rollout on τ-bench retail", () => {
  test("plays all 115 test tasks, rewards each solution with 1, and verifies clean", async () => {
    const environment = createTauRetail({ bundle: await loadTauBenchBundle(bundle) });
    const scripts = await solutions(environment, { taskCount: 115, sampleCount: 1 });
    await using server = await startSglangTestServer({ policy: sessionScriptPolicy(scripts) });
    const out = path.join(scratch, "retail");
    const result = await runCli(
      rolloutArgs(server, "tau-retail", { out, more: ["--data", bundle, "--format", "slime"] }),
    );
    expect(result.stderr).toContain("115/115 done");
    expect(result.status).toBe(0);
    const summary = JSON.parse(await readFile(path.join(out, "summary.json"), "utf8")) as object;
    expect(summary).toMatchObject({
      end: "finished",
      finished: 115,
      outcomes: { completed: 115, truncated: 0, failed: 0 },
      rewardMean: 1,
      formatErrorCount: 0,
    });
    const verified = await callCli(["verify", path.join(out, "samples.jsonl")]);
    expect(jsonLines(verified.stdout)).toEqual([
      {
        file: path.join(out, "samples.jsonl"),
        samples: 115,
        violations: [],
        note: expect.stringContaining("only this file was checked") as string,
      },
    ]);
    expect(verified.status).toBe(0);
    const slime = jsonLines(await readFile(path.join(out, "samples.slime.jsonl"), "utf8"));
    const bySlimeIndex = new Map(slime.map((row) => [row["index"], row]));
    expect([...bySlimeIndex.keys()].length).toBe(115);
    for (const sample of await readSamples(out)) {
      const index = (sample["metadata"] as { taskIndex: number }).taskIndex;
      const promptLength = sample["promptLength"] as number;
      expect(bySlimeIndex.get(index)).toMatchObject({
        tokens: sample["tokenIds"],
        loss_mask: (sample["lossMask"] as number[]).slice(promptLength),
        rollout_log_probs: (sample["logprobs"] as number[]).slice(promptLength),
        reward: 1,
        status: "completed",
      });
    }
  });
});

describe("turnwright rollout on the built-in shop", () => {
  test("survives an engine that is killed and started again in the middle of a run", async () => {
    const environment = createStorefront();
    const file = path.join(scratch, "scripts.json");
    const scripts = await solutions(environment, { taskCount: 24, sampleCount: 2 });
    await writeFile(file, JSON.stringify(scripts));
    await using server = await spawnTestServer({
      policy: policyModule,
      policyOptions: { file },
      options: { tokenLatencyMs: 2 },
      startMs: 600_000,
    });
    const out = path.join(scratch, "killed");
    const running = callCli(
      rolloutArgs(server, "storefront", {
        out,
        more: ["--tasks", "0-23", "--samples", "2", "--json"],
      }),
    );
    await waitForEpisodes(out, 4);
    await server.kill();
    const finishedBefore = (await readSamples(out)).length;
    await server.restart();
    const { status, stdout } = await running;
    expect(status).toBe(0);
    expect(jsonLines(stdout).at(-1)).toMatchObject({
      type: "summary",
      end: "finished",
      finished: 48,
      outcomes: { completed: 48, truncated: 0, failed: 0 },
      rewardMean: 1,
    });
    expect(finishedBefore).toBeLessThan(48);
    expect(
      jsonLines((await callCli(["verify", path.join(out, "samples.jsonl")])).stdout),
    ).toMatchObject([{ samples: 48, violations: [] }]);
  });

  test("continues an interrupted run, without losing or repeating an episode", async () => {
    const environment = createStorefront();
    const state = { isHanging: true };
    await using server = await startSglangTestServer({
      policy: sessionScriptPolicy(await solutions(environment, { taskCount: 24, sampleCount: 1 })),
      // On a slow machine the interrupted run has more than these left.
      faults: ({ routingKey = "" }) =>
        state.isHanging && !/\/[0-3]#0$/.test(routingKey) ? { kind: "hang" } : undefined,
    });
    const out = path.join(scratch, "resumed");
    const more = ["--tasks", "0-23", "--concurrency", "4", "--json"];
    const args = rolloutArgs(server, "storefront", { out, more });
    const first = await interruptAfter(args, out, 3);
    expect(first.status).toBe(130);
    const before = await readSamples(out);
    expect(before.length).toBeGreaterThanOrEqual(3);
    expect(before.length).toBeLessThan(24);
    state.isHanging = false;
    const second = await callCli(args);
    expect(second.status).toBe(0);
    expect(jsonLines(second.stdout).at(-1)).toMatchObject({
      end: "finished",
      finished: 24,
      resumed: before.length,
    });
    // In the order of the plan, and those that were there as they were.
    const after = await readSamples(out);
    expect(after.map((row) => row["rolloutId"])).toEqual(
      Array.from({ length: 24 }, (_, index) => `storefront/test/${index}#0`),
    );
    expect(after).toEqual(expect.arrayContaining(before));
    const other = await callCli([...args, "--temperature", "0.5"]);
    expect(other).toMatchObject({ status: 2, stdout: "" });
    expect(other.stderr).toContain("temperature was 1 and is 0.5");
  });
});

describe("turnwright rollout with a user model", () => {
  test("reports the user's cost in each record and in the summary", async () => {
    await using server = await startSglangTestServer({ policy: createSeededPolicy() });
    await using user = await startChatCompletionsServer(["Hi", "###STOP###", "Hi", "###STOP###"]);
    const out = path.join(scratch, "priced");
    const { status, stdout } = await callCli([
      "rollout",
      "--url",
      server.url,
      "--model",
      smallModelFolder,
      "--parser",
      "qwen25",
      "--split",
      "test",
      "--env",
      "storefront",
      "--tasks",
      "0-1",
      "--concurrency",
      "1",
      "--out",
      out,
      "--max-tokens-per-turn",
      "8",
      "--on-length",
      "close-and-continue",
      "--user",
      "llm",
      "--user-url",
      user.baseUrl,
      "--user-model",
      "m",
      "--user-input-price",
      "2000",
      "--user-output-price",
      "4000",
    ]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/user model +4 calls, 40 tokens in, 20 out, \$0\.1600\n/);
    const episodes = jsonLines(await readFile(path.join(out, "episodes.jsonl"), "utf8"));
    expect(episodes.map(({ userUsage }) => userUsage)).toEqual(
      Array.from({ length: 2 }, () => ({
        callCount: 2,
        inputTokenCount: 20,
        outputTokenCount: 10,
        costUsd: 0.08,
      })),
    );
    const summary = JSON.parse(await readFile(path.join(out, "summary.json"), "utf8")) as object;
    expect(summary).toMatchObject({
      userUsage: { callCount: 4, inputTokenCount: 40, outputTokenCount: 20, costUsd: 0.16 },
    });
  });
});

describe("turnwright rollout with trouble on the other side", () => {
  async function troubled(
    name: string,
    more: readonly string[],
    faults: readonly (ServerFault | undefined)[] = [],
  ) {
    await using server = await startSglangTestServer({ policy: createSeededPolicy(), faults });
    const out = path.join(scratch, name);
    const lines = path.join(scratch, "lines.json");
    await writeFile(lines, JSON.stringify(["Hi", ...Array.from({ length: 40 }, () => "Pardon?")]));
    const args = [
      "--user-script",
      lines,
      "--split",
      "test",
      "--env",
      "storefront",
      "--tasks",
      "0-1",
      "--attempts",
      "1",
      "--json",
    ];
    const { status, stdout } = await callCli([
      "rollout",
      "--url",
      server.url,
      "--model",
      smallModelFolder,
      "--parser",
      "qwen25",
      "--out",
      out,
      "--max-tokens-per-turn",
      "8",
      "--on-length",
      "close-and-continue",
      ...args,
      ...more,
    ]);
    const verified = await callCli(["verify", path.join(out, "samples.jsonl")]);
    expect(jsonLines(verified.stdout)).toMatchObject([{ violations: [] }]);
    return { status, summary: jsonLines(stdout).at(-1)!, samples: await readSamples(out) };
  }

  test("a user model that hangs fails the user, and scores nothing", async () => {
    await using user = await startChatCompletionsServer(
      Array.from({ length: 20 }, () => ({ trouble: "hang" }) as const),
    );
    const { status, summary } = await troubled("hanging-user", [
      "--user",
      "llm",
      "--user-url",
      user.baseUrl,
      "--user-model",
      "m",
      "--user-timeout",
      "0.5",
    ]);
    expect(summary).toMatchObject({
      end: "finished",
      scored: 0,
      outcomes: { completed: 0, truncated: 0, failed: 2 },
      failures: { "user/timeout": 2 },
    });
    expect(summary).not.toHaveProperty("rewardMean");
    expect(status).toBe(1);
  });

  test("an engine with nonsense answers fails the engine, and keeps the recorded turns", async () => {
    const html = Array.from({ length: 20 }, () => ({ kind: "html" }) as const);
    const faults = [undefined, undefined, ...html];
    const { summary, samples } = await troubled("html", ["--user", "scripted"], faults);
    expect(summary).toMatchObject({
      scored: 0,
      outcomes: { failed: 2 },
      failures: { "engine/bad-reply": 2 },
    });
    for (const sample of samples) {
      expect(sample).not.toHaveProperty("reward");
      expect(sample).toMatchObject({
        outcome: "failed",
        failure: {
          party: "engine",
          discarded: Array.from({ length: 3 }, () => ({
            reason: expect.stringContaining("the reply is not JSON"),
          })),
        },
      });
    }
  });

  test("a null logprob never enters a sample", async () => {
    const fault = { kind: "null-logprob", position: 3 } as const;
    const faults = Array.from({ length: 20 }, () => fault);
    const { summary } = await troubled("null-logprob", ["--user", "scripted"], faults);
    expect(summary).toMatchObject({ scored: 0, failures: { "engine/nan": 2 } });
  });
});

async function waitForEpisodes(out: string, count: number): Promise<void> {
  for (;;) {
    const text = await readFile(path.join(out, "episodes.jsonl"), "utf8").catch(() => "");
    if (text.split("\n").length > count) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function interruptAfter(
  args: readonly string[],
  out: string,
  episodeCount: number,
): Promise<{ status: number | null }> {
  const child = spawn(process.execPath, [cliFile, ...args], { stdio: "ignore" });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  await waitForEpisodes(out, episodeCount);
  child.kill("SIGINT");
  return { status: await ended };
}
