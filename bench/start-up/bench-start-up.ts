import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { withResolvers } from "../../src/async/with-resolvers.ts";
import { findBundle } from "../../src/composition/environment/environments.ts";
import { startSglangTestServer } from "../../src/testing/index.ts";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { qwen3Folder } from "../bench-model.ts";
import { against, ourFolder } from "../checkouts.ts";
import { median } from "../cpu-time.ts";
import { type SeedScript, writeSeedScript } from "../seed/seed-script.ts";
import { type PlayedRun, playCommand } from "./play-command.ts";
import { createSeedPolicy, createSilentPolicy } from "./seed-policy.ts";
import type { ProcessUsage } from "../usage-probe.ts";

/** Measurements of each side. */
const repetitions = 5;

/** Episodes of a short run. */
const fewEpisodes = 6;

/** Episodes of a run of 800 turns. */
const manyEpisodes = 42;

/** Turns of an episode, after which the seed's user leaves. */
const seedTurns = 19;

/** Places of a play. */
type Places = Pick<PlayedRun, "bundleDir" | "folder">;

/** A measured command: plays it with a checkout. */
type Play = (checkout: string, places: Places) => Promise<ProcessUsage>;

/** The usages of this checkout's processes, and those of the other checkout's. */
type Sides = readonly (readonly ProcessUsage[])[];

/**
 * Measures a command from its start to its first request to the engine, a complete run of six episodes, and the first
 * 800 turns of a run: τ-bench retail with the Qwen3 tokenizer, each in a new process.
 *
 *     npm run bench -- --only start-up --base DIR
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
  const measure = async (play: Play): Promise<Sides> =>
    await measureSides(play, { bundleDir, folder }, base);
  try {
    const first = await measure(playToFirstRequest);
    yield toFigure("CPU to the first request", "s", first, cpuOf);
    yield toFigure("memory to the first request", "MiB", first, memoryOf);
    const { script, policy } = await readSeed();
    const playSeed =
      (run: Pick<PlayedRun, "episodeCount" | "userLines">): Play =>
      async (checkout, places) => {
        await using server = await startSglangTestServer({ policy });
        return await playCommand({ ...places, ...run, checkout, url: server.url });
      };
    const few = await measure(playSeed({ episodeCount: fewEpisodes }));
    yield toFigure(`CPU of a run of ${fewEpisodes} episodes`, "s", few, cpuOf);
    yield toFigure(`memory of a run of ${fewEpisodes} episodes`, "MiB", few, memoryOf);
    const turnCount = manyEpisodes * seedTurns;
    const { userLines } = script;
    const many = await measure(playSeed({ episodeCount: manyEpisodes, userLines }));
    const figure = `CPU a turn of the first ${turnCount}`;
    yield toFigure(figure, "ms", many, (usage) => (cpuOf(usage) / turnCount) * 1000);
    yield toFigure(
      `${figure}, after the first request`,
      "ms",
      many,
      ({ cpuMs, startMs }) => (cpuMs - startMs) / turnCount,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Measures this checkout and the other one in turns. */
async function measureSides(play: Play, places: Places, base?: string): Promise<Sides> {
  const ours: ProcessUsage[] = [];
  const theirs: ProcessUsage[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    if (base !== undefined) theirs.push(await play(path.resolve(base), places));
    ours.push(await play(ourFolder, places));
  }
  return [ours, theirs];
}

const cpuOf = ({ cpuMs }: ProcessUsage) => cpuMs / 1000;
const memoryOf = ({ peakMiB }: ProcessUsage) => peakMiB;

function toFigure(
  figure: string,
  unit: string,
  sides: Sides,
  valueOf: (usage: ProcessUsage) => number,
): BenchFigure {
  const [ours = [], theirs = []] = sides.map((usages) => usages.map(valueOf));
  const value = median(ours);
  const baseline = theirs.length === 0 ? undefined : median(theirs);
  return { bench: "start-up", figure, value, unit, ...against(value, baseline) };
}

/** The first request ends the process. */
async function playToFirstRequest(checkout: string, places: Places): Promise<ProcessUsage> {
  const reached = withResolvers();
  await using server = await startSglangTestServer({ policy: createSilentPolicy(reached.resolve) });
  const { url } = server;
  const end = reached.promise;
  return await playCommand({ ...places, checkout, url, episodeCount: fewEpisodes, end });
}

async function readSeed() {
  const codec = await loadTokenCodec(qwen3Folder());
  const script: SeedScript = await writeSeedScript(codec);
  const policy = await createSeedPolicy(codec, script);
  await codec.close?.();
  return { script, policy };
}
