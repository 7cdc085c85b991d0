import path from "node:path";
import { compileChatTemplate } from "../packages/chat-template/src/chat-template.ts";
import type { RunPlan } from "../src/run/schedule/plan-run.ts";
import { RunFolder } from "../src/run/folder/run-folder.ts";
import type { RunOptions } from "../src/run/run-rollouts.ts";
import { benchManifest, playInto } from "./play-into-folder.ts";
import { readModelFolder } from "../src/tokenizer/model-folder.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { qwen3Folder } from "./bench-model.ts";
import { cpuMs } from "./cpu-time.ts";
import { withLoopback } from "./loopback-play.ts";
import { playSeedsWay, type SeedsWay } from "./seed/play-seeds-way.ts";

/** Episodes at once: all measured ones. */
const concurrency = 512;
/** Episodes before the measurement, to warm up. */
const warmUpCount = 64;
/** Episodes of the comparison. It costs many times as much a turn, so fewer are enough. */
const seedsCount = 64;

/** The turns that were played, and their CPU in this process. */
export interface SeedFigures {
  readonly turnCount: number;
  readonly cpuMs: number;
}

/**
 * Measures this process's CPU per turn over loopback HTTP: τ-bench retail with the Qwen3 tokenizer, a
 * run with a journal, 512 episodes at once. The engine and the user's model are separate processes. The
 * comparison is slime's example, which renders the complete conversation, sends it as text each turn, and
 * encodes it again for the training row.
 */
export async function benchSeed(): Promise<BenchFigure[]> {
  const measured = await withLoopback(async ({ setup, folder, engineUrl, planOf }) => {
    await playOurWay(path.join(folder, "warm-up"), { plan: planOf(warmUpCount), setup });
    const ours = await playOurWay(path.join(folder, "run"), { plan: planOf(concurrency), setup });
    const { environment, user, agent, renderer } = setup;
    const { chatTemplate } = await readModelFolder(qwen3Folder());
    const seeds = await playTheSeedsWay(planOf(seedsCount), {
      environment,
      user,
      agent,
      codec: renderer!.codec,
      engineUrl,
      template: compileChatTemplate(chatTemplate ?? ""),
    });
    return toFigures(ours, seeds);
  });
  if (measured !== undefined) return measured;
  process.stderr.write("seed: no τ-bench bundle at hand, nothing is measured\n");
  return [];
}

type Played = Pick<RunOptions, "plan" | "setup">;

/** Measures the complete run, from the first episode to the last row on the disk. */
async function playOurWay(dir: string, { plan, setup }: Played): Promise<SeedFigures> {
  let turnCount = 0;
  let failed = 0;
  await using folder = await RunFolder.open(dir, benchManifest, { retryFailed: false });
  const spent = await cpuMs(async () => {
    await playInto(folder, {
      plan,
      setup,
      concurrency,
      onEpisode: ({ outcome, turns }) => {
        turnCount += turns.length;
        if (outcome !== "completed") failed += 1;
      },
    });
  });
  if (failed === 0 && turnCount > 0) return { turnCount, cpuMs: spent };
  throw new Error(`Cannot measure: ${failed} of ${plan.length} episodes were not completed`);
}

/** Measures after a warm-up with half of the episodes. */
async function playTheSeedsWay(plan: RunPlan, way: SeedsWay): Promise<SeedFigures> {
  const planned = [...plan];
  const playAll = async (some: typeof planned): Promise<number> => {
    const counts = await Promise.all(some.map((each) => playSeedsWay(each, way)));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  await playAll(planned.splice(0, plan.length / 2));
  let turnCount = 0;
  const spent = await cpuMs(async () => {
    turnCount = await playAll(planned);
  });
  return { turnCount, cpuMs: spent };
}

function toFigures(ours: SeedFigures, seeds: SeedFigures): BenchFigure[] {
  const value = ours.cpuMs / ours.turnCount;
  const baseline = seeds.cpuMs / seeds.turnCount;
  return [
    {
      bench: "seed",
      figure: "CPU per turn over HTTP, against the seed's way",
      value,
      unit: "ms",
      baseline,
      ratio: baseline / value,
      at: concurrency,
    },
  ];
}
