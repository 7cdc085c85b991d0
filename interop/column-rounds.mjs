// Rounds of `--columns`: routes of a tiny mixture of experts, with an update of the weights, an abort and kills.
import assert from "node:assert/strict";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadSglangWeights } from "../dist/src/engine/sglang/load-weights.js";
import { createVllmWeightLoader } from "../dist/src/engine/vllm/load-weights.js";
import { compareRoutes } from "./compare-routes.mjs";
import { run } from "./install.mjs";
import { command, start, toRollout, untilOver } from "./rounds.mjs";
import { modelDir } from "./servers.mjs";

/** Episodes of the rounds with an event in the middle. */
const EVENTFUL_COUNT = 16;

const makeFile = fileURLToPath(new URL("make-moe.py", import.meta.url));

/** Writes two models of one shape: the served one, and the one that an update loads. */
export function prepareModels(dir, folder) {
  const python = path.join(folder, "venv/bin/python");
  const models = { base: path.join(dir, "moe-1"), next: path.join(dir, "moe-2") };
  for (const [seed, out] of Object.values(models).entries()) {
    run(python, [makeFile, modelDir, out, `${seed + 1}`]);
  }
  return models;
}

/** Plays episodes, and compares all routes. */
export async function playColumns(context, { count }) {
  const { out, args } = toColumnRollout(context, { name: "columns", first: 0, count });
  await command(args);
  return await check(context, out, count);
}

/** Kills a run in the middle, and continues it. */
export async function killColumns(context) {
  return await cutShort(context, { name: "columns-killed", first: 64, signal: "SIGKILL" });
}

/** Aborts the turns of a run in the middle, and continues it. */
export async function abortColumns(context) {
  return await cutShort(context, { name: "columns-aborted", first: 80, signal: "SIGINT" });
}

async function cutShort(context, { name, first, signal }) {
  const { out, args } = toColumnRollout(context, { name, first });
  const running = start(args);
  await untilOver(out, running);
  running.child.kill(signal);
  await running.closed;
  await command(args);
  return await check(context, out, EVENTFUL_COUNT);
}

/** Loads other weights in the middle of a run. Each row must be of the weights of its version. */
export async function updateColumns(context) {
  const { out, args } = toColumnRollout(context, { name: "columns-updated", first: 96 });
  const running = start(args);
  await untilOver(out, running);
  await context.update("2");
  const { status, stderr } = await running.closed;
  assert.equal(status, 0, stderr);
  const figures = await check(context, out, EVENTFUL_COUNT);
  assert.equal(Object.keys(figures.versions).length, 2, "not both versions have rows");
  return figures;
}

/** Returns the function that loads the other weights into a server. */
export function updaterOf({ name }, url, models) {
  return async (version) => {
    const weights = { path: models.next, version };
    if (name === "sglang") await loadSglangWeights({ urls: [url] }, weights);
    else await createVllmWeightLoader({ urls: [url] }).load(weights);
  };
}

/** Returns a rollout of short turns with routes. A random model rarely ends its turns. */
function toColumnRollout(context, { name, first, count = EVENTFUL_COUNT }) {
  const columns = context.columns ?? "routedExperts";
  const sampling = "--temperature 1 --max-turns 4 --max-tokens-per-turn 24 --engine-timeout 600";
  const flags = ["--columns", columns, ...sampling.split(" ")];
  return toRollout(context, { name, first, count, flags });
}

async function check(context, out, count) {
  const { stdout } = await command(["verify", out]);
  const { samples, violations } = JSON.parse(stdout);
  assert.deepEqual(violations, []);
  assert.equal(samples, count, `${samples} samples of ${count} episodes`);
  return { samples, ...(await compareRoutes(out, context.routesOf)) };
}
