import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createToolCallingAgent } from "../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../src/agent/tool-use-policy.ts";
import { defineEnvironment } from "../src/environment/define-environment.ts";
import { defaultLimits } from "../src/episode/limits.ts";
import { findToolCallParser } from "../packages/tool-parsers/src/registry.ts";
import { planRun } from "../src/run/schedule/plan-run.ts";
import { RunFolder } from "../src/run/folder/run-folder.ts";
import { benchManifest, playInto } from "./play-into-folder.ts";
import {
  characterIds,
  createCharacterRenderer,
  characterStopId,
} from "../src/testing/character-renderer.ts";
import { createScriptedUser } from "../src/user/scripted-user.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { instantEngine } from "./instant-engine.ts";

const episodeCount = 100_000;
const settledAt = 10_000;
const concurrency = 256;
const megabyte = 2 ** 20;

/**
 * Measures a run of a hundred thousand short episodes: the memory that it keeps, and the cost of opening
 * its folder again.
 */
export async function* benchManyEpisodes(): AsyncGenerator<BenchFigure> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  const figure = (name: string, value: number, unit: string): BenchFigure => ({
    bench: "many-episodes",
    figure: name,
    value,
    unit,
    at: `${episodeCount} episodes`,
  });
  try {
    const settled = await playAll(dir);
    yield figure(`resident memory after the first ${settledAt}`, settled.early / megabyte, "MiB");
    yield figure("resident memory at the end", settled.late / megabyte, "MiB");
    yield figure(
      "heap that is in use after the first, collected",
      settled.earlyHeap / megabyte,
      "MiB",
    );
    yield figure("heap that is in use at the end, collected", settled.lateHeap / megabyte, "MiB");
    yield figure("episodes a second", settled.perSecond, "1/s");
    // In a new process, so that the memory of the run itself does not count.
    const opened = spawnSync(process.execPath, [fileURLToPath(import.meta.url), dir], {
      encoding: "utf8",
    });
    const again = JSON.parse(opened.stdout) as Opened;
    yield figure("CPU to open the folder again", again.cpuMs / 1000, "s");
    yield figure("time to open the folder again", again.ms / 1000, "s");
    yield figure("most memory while it is opened", again.peakKib / 1024, "MiB");
  } finally {
    await rm(dir, { recursive: true });
  }
}

interface Opened {
  readonly ms: number;
  readonly cpuMs: number;
  readonly peakKib: number;
}

async function playAll(dir: string) {
  const environment = defineEnvironment({
    name: "greeting",
    tasks: Array.from({ length: episodeCount }, () => ({ instruction: "" })),
    policy: "",
    tools: {},
    score: () => 1,
  });
  const farewell = [...characterIds("Goodbye!"), characterStopId];
  const setup = {
    environment,
    user: createScriptedUser({ lines: ["Hello.", { text: "Bye.", leaves: true }] }),
    engine: instantEngine(() => farewell, { latencyMs: 1 }),
    renderer: createCharacterRenderer(),
    agent: createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies.many,
    }),
    sampling: {},
    limits: defaultLimits,
    now: Date.now,
  };
  const [split = "test"] = Object.keys(environment.splits);
  const taskIndexes = Array.from({ length: episodeCount }, (_, index) => index);
  const plan = planRun(environment, { split, taskIndexes, sampleCount: 1, seed: 0 });
  await using folder = await RunFolder.open(dir, benchManifest, { retryFailed: false });
  const startedAt = performance.now();
  let count = 0;
  let early = 0;
  let earlyHeap = 0;
  let late = 0;
  await playInto(folder, {
    plan,
    setup,
    concurrency,
    onEpisode: () => {
      count += 1;
      if (count === settledAt) {
        earlyHeap = heapInUse();
        early = process.memoryUsage().rss;
      } else if (count === episodeCount) late = process.memoryUsage().rss;
    },
  });
  const perSecond = (episodeCount * 1000) / (performance.now() - startedAt);
  return { early, late, earlyHeap, lateHeap: heapInUse(), perSecond };
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapInUse(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Opens the folder of a run in the same way as its next start. */
async function openAgain(dir: string): Promise<Opened> {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  await using folder = await RunFolder.open(dir, benchManifest, { retryFailed: false });
  if (folder.finished.length !== episodeCount) throw new Error("episodes are missing");
  const { user, system } = process.cpuUsage(before);
  const ms = performance.now() - startedAt;
  return { ms, cpuMs: (user + system) / 1000, peakKib: process.resourceUsage().maxRSS };
}

const [, main, dir] = process.argv;
if (main === fileURLToPath(import.meta.url) && dir !== undefined) {
  process.stdout.write(JSON.stringify(await openAgain(dir)));
}
