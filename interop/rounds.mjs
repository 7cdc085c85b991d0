// Rounds with a running server. Each returns its figures, and throws if a check fails.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createLlamaCppEngine } from "../dist/src/engine/llama-cpp/llama-cpp-engine.js";
import { createSglangEngine } from "../dist/src/engine/sglang/sglang-engine.js";
import { createVllmEngine } from "../dist/src/engine/vllm/vllm-engine.js";
import { modelDir } from "./servers.mjs";

const cliFile = fileURLToPath(new URL("../dist/src/cli/main.js", import.meta.url));

/** Episodes of the rounds with an event in the middle. */
const EVENTFUL_COUNT = 16;

/** Finished episodes before that event. */
const BEFORE_COUNT = 4;

/**
 * The wait before a server is asked if it is idle, in milliseconds. llama.cpp's server notices a
 * disconnected client only after a second without an answer.
 */
const QUIET_MS = 2_500;

/** Plays episodes and verifies them. */
export async function play(context, { count, flags = [], name = "play" }) {
  const { out, args } = toRollout(context, { name, first: 0, count, flags });
  const startedAt = Date.now();
  await command(args);
  const seconds = (Date.now() - startedAt) / 1_000;
  return { ...(await check(out, count)), seconds };
}

/** Computes the logprobs of the played episodes again. */
export async function rescore({ server, dir }, { name = "play", limits = server.rescore }) {
  const { engine, flags = [] } = server.rescore;
  const file = path.join(dir, name, "samples.jsonl");
  const which = engine === undefined ? [] : ["--engine", engine];
  const { stdout } = await command(["verify", "--rescore", ...which, ...flags, file], [0, 1]);
  const { rescore: figures } = JSON.parse(stdout);
  const { meanDifference: mean, largest, beyondToleranceCount, tokenCount } = figures;
  assert.ok(mean <= limits.meanLimit, `rescored with a mean difference of ${mean}`);
  return {
    by: engine ?? server.name,
    tokenCount,
    mean,
    largest: largest.difference,
    beyond1e5: beyondToleranceCount,
  };
}

/** Kills a run in the middle, and resumes it. */
export async function killRun(context) {
  const { out, args } = toRollout(context, { name: "killed", first: 64 });
  const run = start(args);
  await untilOver(out, run);
  run.child.kill("SIGKILL");
  await run.closed;
  await command(args);
  const figures = await check(out, EVENTFUL_COUNT);
  assert.ok(figures.resumed >= BEFORE_COUNT, `only ${figures.resumed} episodes were kept`);
  return figures;
}

/**
 * Kills the server in the middle, and starts it again. Episodes that failed before the server returned are
 * played when the run is started again.
 */
export async function killServer(context, { count: wanted }) {
  // Fewer episodes would end before the kill.
  const count = Math.max(wanted, EVENTFUL_COUNT);
  const { out, args } = toRollout(context, { name: "server-killed", first: 80, count });
  const run = start(args);
  await untilOver(out, run);
  const over = readLines(path.join(out, "episodes.jsonl")).length;
  assert.ok(over < count, "The run was over before the server was killed");
  const killedAt = Date.now();
  await context.restart();
  const downMs = Date.now() - killedAt;
  const { status } = await run.closed;
  const { outcomes } = JSON.parse(readFileSync(path.join(out, "summary.json"), "utf8"));
  if (status !== 0) await command([...args, "--retry-failed"]);
  const figures = await check(out, count);
  return { ...figures, overBefore: over, downMs, status, failedBefore: outcomes.failed };
}

/** Updates the weights in the middle. The samples must name both versions. */
export async function update(context) {
  const { out, args } = toRollout(context, { name: "updated", first: 96 });
  const run = start(args);
  await untilOver(out, run);
  const version = `updated-${Date.now()}`;
  await context.server.updateWeights(context.url, version);
  await run.closed;
  const figures = await check(out, EVENTFUL_COUNT);
  const samples = readLines(path.join(out, "samples.jsonl"));
  const isNew = (sample) => sample.policyVersions.includes(version);
  const isOld = (sample) => sample.policyVersions.some((each) => each !== "" && each !== version);
  const both = samples.filter((sample) => isNew(sample) && isOld(sample)).length;
  assert.ok(samples.some(isNew) && samples.some(isOld), "not both versions are named");
  return { ...figures, samplesOfBothVersions: both };
}

/** Cancels long turns, and waits until the server is idle. */
export async function abort({ server, url }) {
  const create = {
    "llama-cpp": createLlamaCppEngine,
    vllm: createVllmEngine,
    sglang: createSglangEngine,
  };
  const engine = create[server.name]({ url });
  const reason = new Error("enough");
  const turns = Array.from({ length: 4 }, async (_, index) => {
    const controller = new AbortController();
    const call = engine.generate(
      {
        promptIds: [1, 2, 3, 4],
        sampling: { extra: { ignore_eos: true } },
        maxNewTokens: 3_000,
        stopTokenIds: [],
        requestId: `abort-${index}-`,
        sessionId: `abort-${index}`,
      },
      { signal: controller.signal },
    );
    await sleep(1_000);
    controller.abort(reason);
    await assert.rejects(call, reason);
  });
  await Promise.all(turns);
  const startedAt = Date.now();
  do await sleep(QUIET_MS);
  while (!(await server.isIdle(url)));
  await engine.close();
  return { aborted: turns.length, idleAfterMs: Date.now() - startedAt };
}

/** Returns the arguments of a rollout, and its folder. */
export function toRollout(
  { server, url, dir, model = modelDir },
  { name, first, count = EVENTFUL_COUNT, flags = [] },
) {
  const out = path.join(dir, name);
  const tasks = `${first}-${first + count - 1}`;
  const args = [
    "rollout",
    "--env",
    "storefront",
    "--user",
    "scripted",
    "--tasks",
    tasks,
    "--engine",
    server.name,
    "--url",
    url,
    "--model",
    model,
    "--concurrency",
    "8",
    "--quiet",
    "--out",
    out,
    ...flags,
  ];
  return { out, args };
}

/** True if a run is complete, none of its episodes failed, and its samples verify. */
async function check(out, count) {
  const { stdout } = await command(["verify", path.join(out, "samples.jsonl")]);
  const { samples, violations } = JSON.parse(stdout);
  const summary = JSON.parse(readFileSync(path.join(out, "summary.json"), "utf8"));
  const { finished, resumed, outcomes, retried, sampledTokenCount, rewardMean } = summary;
  assert.deepEqual(violations, []);
  assert.equal(finished, count, `${finished} of ${count} episodes are finished`);
  assert.equal(outcomes.failed, 0, `${outcomes.failed} episodes failed`);
  assert.equal(samples, count, `${samples} samples of ${count} episodes`);
  return { episodes: finished, resumed, retried, sampledTokenCount, rewardMean, verified: true };
}

/** Waits until some episodes of a run are over. */
export async function untilOver(out, { closed }) {
  const file = path.join(out, "episodes.jsonl");
  let isClosed = false;
  void closed.then(() => {
    isClosed = true;
  });
  while (!existsSync(file) || readLines(file).length < BEFORE_COUNT) {
    assert.ok(!isClosed, "The run was over before anything happened to it");
    await sleep(50);
  }
}

/** Reads complete lines only, because another process may be writing. */
function readLines(file) {
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}

/** Starts a command of Turnwright. */
export function start(args) {
  const child = spawn(process.execPath, [cliFile, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
  const closed = new Promise((resolve) => {
    child.once("close", (status) => resolve({ status, stdout, stderr }));
  });
  return { child, closed };
}

/** Runs a command of Turnwright to its end. */
export async function command(args, statuses = [0]) {
  const result = await start(args).closed;
  assert.ok(
    statuses.includes(result.status),
    `turnwright ${args[0]} ended with status ${result.status}: ${result.stderr}${result.stdout.slice(0, 2_000)}`,
  );
  return result;
}
