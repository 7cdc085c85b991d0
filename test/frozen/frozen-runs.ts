import { cp, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { createStorefront, demonstrate } from "../../environments/storefront/index.ts";
import { scriptSessions } from "../../src/cli/demo/session-scripts.ts";
import { exporters } from "../../src/export/exporters.ts";
import { planRun } from "../../src/run/schedule/plan-run.ts";
import {
  createSeededPolicy,
  startLlamaCppTestServer,
  startSglangTestServer,
  startVllmTestServer,
  createTextPolicy,
} from "../../src/testing/index.ts";
import type { ServerPolicy } from "../../src/testing/policies/server-policy.ts";
import { sessionScriptPolicy } from "../../src/testing/policies/session-script-policy.ts";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import { callCli } from "../support/call-cli.ts";
import { qwen3Folder } from "../support/qwen3-model.ts";
import type { Scenario } from "../simulation/scenario.ts";
import { scenarioOf, simulate } from "../simulation/simulate.ts";
import { smallModelEndId, smallModelFolder } from "../support/small-model.ts";
import { askGateway } from "./frozen-gateway.ts";
import { playInterruptedRun } from "./interrupted-run.ts";
import { recordRequests } from "./request-recorder.ts";
import { stableText } from "./stable-text.ts";

/** The bytes that one run gives, by their name. */
export type RunBytes = Readonly<Record<string, string>>;

/** Plays a run in an empty folder. The run's own folder is `run` below it. */
export type FrozenRun = (scratch: string) => Promise<RunBytes>;

const plan = { split: "test", taskIndexes: [0, 1, 2], sampleCount: 2, seed: 0 } as const;

/** The flags of each run: three tasks of the shop, two attempts at each, one at a time. */
const flags = [
  "--split",
  "test",
  "--env",
  "storefront",
  "--user",
  "scripted",
  "--model",
  smallModelFolder,
  "--tasks",
  "0-2",
  "--samples",
  "2",
  "--concurrency",
  "1",
  "--format",
  "slime",
  "--sampling-seed",
  "7",
  "--max-tokens-per-turn",
  "96",
  "--max-turns",
  "12",
];

const textAgents = ["act", "react"] as const;

/** Every run that is frozen, by its name. */
export const frozenRuns: Readonly<Record<string, FrozenRun>> = {
  reference: (scratch) => play(scratch, ["--engine", "reference", "--threads", "1"]),
  sglang: async (scratch) => await playOnSglang(scratch, await createScriptedPolicy()),
  "sglang with random tokens": (scratch) => playOnSglang(scratch, randomPolicy()),
  "vllm generate": (scratch) => playOnVllm(scratch, "generate"),
  "vllm completions": (scratch) => playOnVllm(scratch, "completions"),
  "llama-cpp": playOnLlamaCpp,
  ...Object.fromEntries(
    textAgents.map((agent) => [
      `agent ${agent}`,
      async (scratch: string) =>
        await playOnSglang(scratch, await firstTaskPolicy(asTextActions), ["--agent", agent]),
    ]),
  ),
  "first call only": async (scratch) =>
    await playOnSglang(scratch, await createScriptedPolicy(), ["--tool-use", "first"]),
  ...Object.fromEntries(
    ["keep", "split"].map((history) => [
      `history ${history}`,
      async (scratch: string) => await playThinking(scratch, history),
    ]),
  ),
  "history refuse": async (scratch) =>
    await playOnSglang(scratch, await createScriptedPolicy(), ["--history", "refuse"]),
  "new weights": playNewWeights,
  interrupt: playInterrupted,
  branches: async (scratch) =>
    await play(scratch, ["--engine", "reference", "--threads", "1", "--branch-at", "1,3"]),
  fork: playFork,
  resume: playResumed,
  gateway: playGateway,
  "simulated with kills": () => simulateSeeds((scenario) => scenario.queue === undefined),
  "simulated with kills and workers": () =>
    simulateSeeds((scenario) => scenario.queue !== undefined),
};

async function playOnSglang(
  scratch: string,
  policy: ServerPolicy,
  more: readonly string[] = [],
): Promise<RunBytes> {
  await using server = await startSglangTestServer({ policy });
  return await playOver(scratch, server.url, ["--parser", "qwen25", ...more]);
}

async function playOnVllm(scratch: string, api: "generate" | "completions"): Promise<RunBytes> {
  await using server = await startVllmTestServer({ policy: await firstTaskPolicy(), apis: [api] });
  return await playOver(scratch, server.url, ["--engine", "vllm", "--parser", "qwen25"]);
}

async function playOnLlamaCpp(scratch: string): Promise<RunBytes> {
  const endTokenIds = [smallModelEndId];
  await using server = await startLlamaCppTestServer({
    policy: await firstTaskPolicy(),
    endTokenIds,
  });
  return await playOver(scratch, server.url, ["--engine", "llama-cpp", "--parser", "qwen25"]);
}

/** Plays Qwen3's template, which drops earlier thoughts from the history. */
async function playThinking(scratch: string, history: string): Promise<RunBytes> {
  const policy = await firstTaskPolicy(
    (turns) => turns.map((turn, index) => `<think>\nStep ${index}.\n</think>\n\n${turn}`),
    qwen3Folder(),
  );
  const model = ["--model", qwen3Folder(), "--history", history];
  return await playOnSglang(scratch, policy, model);
}

/** The weights change after each fifth turn. */
async function playNewWeights(scratch: string): Promise<RunBytes> {
  const policy = await createScriptedPolicy();
  let turnCount = 0;
  const updating: ServerPolicy = {
    ...policy,
    begin(request) {
      turnCount += 1;
      if (turnCount % 5 === 0) server.setWeightVersion(`v${turnCount}`);
      return policy.begin(request);
    },
  };
  await using server = await startSglangTestServer({ policy: updating, weightVersion: "v0" });
  return await playOver(scratch, server.url, ["--parser", "qwen25"]);
}

/** The weights change in the middle of turns, which stop and continue. */
async function playInterrupted(scratch: string): Promise<RunBytes> {
  const out = path.join(scratch, "run");
  const { requests, urls } = await playInterruptedRun(await createScriptedPolicy(), {
    env: "storefront",
    split: "test",
    user: "scripted",
    model: smallModelFolder,
    tasks: "0-2",
    samples: 2,
    format: "slime",
    parser: "qwen25",
    "max-tokens-per-turn": 96,
    "max-turns": 12,
    "sampling-seed": 7,
    out,
  });
  const places = Object.fromEntries(urls.map((url) => [url, "URL"]));
  const bytes = await readRun(scratch, out, places);
  return { requests: stableText(requests.join("\n"), places), ...bytes };
}

async function playFork(scratch: string): Promise<RunBytes> {
  const engine = ["--engine", "reference", "--threads", "1"];
  await play(scratch, engine);
  const out = path.join(scratch, "fork");
  const fork = ["--turn", "2", "--samples", "2", "--seed", "5", "--concurrency", "1"];
  await expectDone(["fork", path.join(scratch, "run"), "1#1", "--out", out, ...fork]);
  return await readRun(scratch, out);
}

/**
 * Copies the run's folder in the middle of an episode, as a killed process leaves it, and finishes the run in the copy.
 * How much of the recording was on the disk by then depends on the machine, so only the results are compared.
 */
async function playResumed(scratch: string): Promise<RunBytes> {
  const policy = await createScriptedPolicy();
  const [out, copy] = [path.join(scratch, "run"), path.join(scratch, "copy")];
  let turnCount = 0;
  const watched: ServerPolicy = {
    ...policy,
    async begin(request) {
      turnCount += 1;
      if (turnCount === 16) await cp(out, copy, { recursive: true });
      return await policy.begin(request);
    },
  };
  await using server = await startSglangTestServer({ policy: watched });
  const engine = ["--url", server.url, "--parser", "qwen25"];
  await expectDone(["rollout", ...flags, ...engine, "--out", out]);
  await rm(path.join(copy, "run.lock"));
  await expectDone(["rollout", ...flags, ...engine, "--out", copy]);
  const whole = keepResults(await readRun(scratch, out));
  const resumed = keepResults(await readRun(scratch, copy));
  expect(resumed).toEqual(whole);
  return resumed;
}

/** Keeps the values that depend neither on the recording's length nor on the server's cache. */
function keepResults(bytes: RunBytes): RunBytes {
  return Object.fromEntries(
    Object.entries(bytes)
      .filter(([name]) => /^(?:samples|verify|export)/.test(name))
      .map(([name, text]) => [name, text.replaceAll(/"cached_tokens":\d+/g, '"cached_tokens":0')]),
  );
}

/**
 * Simulates the first runs of a kind whose rows do not depend on the times of its processes'
 * deaths.
 */
async function simulateSeeds(isWanted: (scenario: Scenario) => boolean): Promise<RunBytes> {
  const bytes: Record<string, string> = {};
  for (let seed = 0; Object.keys(bytes).length < 4; seed++) {
    const scenario = scenarioOf(seed);
    if (!scenario.isUndisturbed || !isWanted(scenario)) continue;
    const { samples, wrong } = await simulate(seed);
    expect(wrong).toEqual([]);
    bytes[`seed ${seed}`] = samples.join("\n");
  }
  return bytes;
}

/** Plays a session of the gateway in each dialect. */
async function playGateway(scratch: string): Promise<RunBytes> {
  const replies = stableText(await askGateway(scratch), { [scratch]: "SCRATCH" });
  const { events: _, recording: __, ...bytes } = await readRun(scratch, path.join(scratch, "run"));
  return { replies, ...bytes };
}

async function playOver(
  scratch: string,
  target: string,
  more: readonly string[],
): Promise<RunBytes> {
  await using recorder = await recordRequests(target);
  const places = { [recorder.url]: "URL", [target]: "URL" };
  const bytes = await play(scratch, ["--url", recorder.url, ...more], places);
  return { requests: stableText(recorder.requests.join("\n"), places), ...bytes };
}

async function play(
  scratch: string,
  more: readonly string[],
  places: Readonly<Record<string, string>> = {},
): Promise<RunBytes> {
  const out = path.join(scratch, "run");
  await expectDone(["rollout", ...flags, "--out", out, ...more]);
  return await readRun(scratch, out, places);
}

/** Reads the files of a run, its export for each trainer, and the results of the checks. */
async function readRun(
  scratch: string,
  out: string,
  places: Readonly<Record<string, string>> = {},
): Promise<RunBytes> {
  const names = { ...places, [out]: "RUN", [scratch]: "SCRATCH", [smallModelFolder]: "MODEL" };
  const bytes: Record<string, string> = {};
  const files = ["samples", "samples.slime", "episodes", "recording", "events"];
  for (const file of files) {
    const text = await readFile(path.join(out, `${file}.jsonl`), "utf8").catch(() => "absent");
    bytes[file] = stableText(text, names);
  }
  bytes["verify"] = stableText((await callCli(["verify", out])).stdout, names);
  bytes["replay"] = stableText((await callCli(["replay", out])).stdout, names);
  for (const trainer of Object.keys(exporters)) {
    const { stdout, stderr } = await callCli(["export", out, "--to", trainer]);
    bytes[`export ${trainer}`] = stableText(`${stdout}${stderr}`, names);
  }
  return bytes;
}

async function expectDone(args: readonly string[]): Promise<void> {
  const { status, stderr } = await callCli(args);
  if (status !== 0) throw new Error(`turnwright ${args.join(" ")} ended with ${status}: ${stderr}`);
}

/** Plays the tasks' own solutions, with slips. */
async function createScriptedPolicy(): Promise<ServerPolicy> {
  const environment = createStorefront();
  const codec = await loadTokenCodec(smallModelFolder);
  const scripts = await scriptSessions(planRun(environment, plan), {
    environment,
    codec,
    mistakeRate: 0.4,
  });
  return sessionScriptPolicy(scripts);
}

/** Plays the solution of the first task for every task. */
async function firstTaskPolicy(
  rewrite: (turns: readonly string[]) => readonly string[] = (turns) => turns,
  modelDir: string = smallModelFolder,
): Promise<ServerPolicy> {
  const { turns } = await demonstrate(createStorefront().task("test", 0), { seed: 0 });
  return await createTextPolicy(rewrite(turns.map(({ text }) => text)), { modelDir });
}

function randomPolicy(): ServerPolicy {
  return createSeededPolicy({ seed: 3, vocabularySize: 2900, stopTokenId: smallModelEndId });
}

/** Writes calls as the agents act and react write their actions. */
function asTextActions(turns: readonly string[]): readonly string[] {
  return turns.map((turn) => {
    const call = /<tool_call>\n(.*?)\n<\/tool_call>/s.exec(turn)?.[1];
    const said = JSON.stringify({ name: "respond", arguments: { content: turn } });
    return `Thought:\nNext.\nAction:\n${call ?? said}`;
  });
}
