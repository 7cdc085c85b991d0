import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { withResolvers } from "../src/async/with-resolvers.ts";
import { findBundle } from "../src/composition/environment/environments.ts";
import type { ServerPolicy } from "../src/testing/policies/server-policy.ts";
import { startSglangTestServer } from "../src/testing/index.ts";
import { loadTokenCodec } from "../src/tokenizer/load-codec.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { qwen3Folder } from "./bench-model.ts";
import { median } from "./cpu-time.ts";
import { writeSeedScript } from "./seed/seed-script.ts";
import type { ProcessUsage } from "./start-up-probe.ts";

/** Measurements of each side. */
const repetitions = 5;

const episodeCount = 6;

/** The root of the checkout. This file runs in dist/bench/. */
const ourFolder = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Measures a command from its start to its first request to the engine, and a complete run of six episodes:
 * τ-bench retail with the Qwen3 tokenizer, each in a new process.
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchStartUp(base?: string): AsyncGenerator<BenchFigure> {
  const bundleDir = await findBundle();
  if (bundleDir === undefined) {
    process.stderr.write("start-up: no τ-bench bundle at hand, nothing is measured\n");
    return;
  }
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  try {
    for (const [figure, play] of Object.entries({
      "to the first request": playToFirstRequest,
      [`of a run of ${episodeCount} episodes`]: playWhole,
    })) {
      const ours: ProcessUsage[] = [];
      const theirs: ProcessUsage[] = [];
      for (let repetition = 0; repetition < repetitions; repetition++) {
        if (base !== undefined) theirs.push(await play(path.resolve(base), { bundleDir, folder }));
        ours.push(await play(ourFolder, { bundleDir, folder }));
      }
      yield toFigure(`CPU ${figure}`, "s", [ours, theirs].map(cpuOf));
      yield toFigure(`memory ${figure}`, "MiB", [ours, theirs].map(memoryOf));
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Places {
  readonly bundleDir: string;
  /** A temporary folder, removed at the end. */
  readonly folder: string;
}

const cpuOf = (usages: readonly ProcessUsage[]) => usages.map(({ cpuSeconds }) => cpuSeconds);
const memoryOf = (usages: readonly ProcessUsage[]) => usages.map(({ peakMiB }) => peakMiB);

function toFigure(figure: string, unit: string, [ours, theirs]: number[][]): BenchFigure {
  const value = median(ours ?? []);
  if (theirs?.length === 0) return { bench: "start-up", figure, value, unit };
  const baseline = median(theirs ?? []);
  return { bench: "start-up", figure, value, unit, baseline, ratio: baseline / value };
}

/** The first request ends the process. */
async function playToFirstRequest(checkout: string, places: Places): Promise<ProcessUsage> {
  const reached = withResolvers();
  const policy: ServerPolicy = {
    name: "silent",
    async begin({ signal }) {
      reached.resolve();
      if (!signal.aborted) await once(signal, "abort");
      return [];
    },
  };
  await using server = await startSglangTestServer({ policy });
  return await command(checkout, places, { url: server.url, end: reached.promise });
}

async function playWhole(checkout: string, places: Places): Promise<ProcessUsage> {
  await using server = await startSglangTestServer({ policy: await seedPolicy() });
  return await command(checkout, places, { url: server.url });
}

/** Returns the same turns in each episode, in order. */
async function seedPolicy(): Promise<ServerPolicy> {
  const codec = await loadTokenCodec(qwen3Folder());
  const { turns } = await writeSeedScript(codec);
  const [opening, assistant] = await codec.encode("<|im_start|>assistant");
  await codec.close?.();
  return {
    name: "seed",
    begin({ inputIds }) {
      const begun = inputIds.filter(
        (id, place) => id === opening && inputIds[place + 1] === assistant,
      );
      const turn = turns[Math.min(begun.length, turns.length) - 1];
      return (turn?.ids ?? []).map((id) => ({ id, logprob: -0.125 }));
    },
  };
}

/** Runs a checkout's command line until it ends, or until `end`. */
async function command(
  checkout: string,
  { bundleDir, folder }: Places,
  { url, end }: { readonly url: string; readonly end?: Promise<void> },
): Promise<ProcessUsage> {
  const [out, usage] = [path.join(folder, "run"), path.join(folder, "usage.json")];
  const child = fork(
    path.join(checkout, "dist/src/cli/main.js"),
    [
      "rollout",
      "--env",
      "tau-retail",
      "--data",
      bundleDir,
      "--split",
      "test",
      "--tasks",
      `0-${episodeCount - 1}`,
      "--user",
      "scripted",
      "--url",
      url,
      "--model",
      qwen3Folder(),
      "--out",
      out,
      "--quiet",
    ],
    {
      execArgv: ["--import", new URL("start-up-probe.js", import.meta.url).href],
      env: { ...process.env, STARTUP_USAGE: usage },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    },
  );
  let said = "";
  child.stderr?.on("data", (text: Buffer) => (said += text.toString()));
  void end?.then(() => child.send("end"));
  const [code] = (await once(child, "close")) as [number | null];
  const taken = JSON.parse(await readFile(usage, "utf8")) as ProcessUsage;
  await rm(out, { recursive: true, force: true });
  await rm(usage);
  if (code === 0) return taken;
  throw new Error(`the command of ${checkout} ended with ${code}: ${said.slice(-500)}`);
}
