import { createStorefront } from "../environments/storefront/storefront.ts";
import { createStorefrontUser } from "../environments/storefront/storefront-user.ts";
import { createTauAirline } from "../environments/tau-bench/airline/create-tau-airline.ts";
import { loadTauBenchBundle } from "../environments/tau-bench/bundle.ts";
import { createTauRetail } from "../environments/tau-bench/retail/create-tau-retail.ts";
import type { Environment, World } from "../src/environment/environment.ts";
import { findBundle } from "../src/composition/environment/environments.ts";
import { defaultScript, createScriptedUser } from "../src/user/scripted-user.ts";
import type { User } from "../src/user/user.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { cpuMs } from "./cpu-time.ts";

const episodeCount = 200;

/** Measures the mean CPU of opening and scoring an episode. Leaves out the first ones, which warm up. */
export async function benchEnvironment(): Promise<BenchFigure[]> {
  const figures = await measure(createStorefront(), createStorefrontUser());
  const bundleDir = await findBundle();
  if (bundleDir === undefined) {
    process.stderr.write("environment: no τ-bench bundle at hand, only storefront is measured\n");
    return figures;
  }
  const bundle = await loadTauBenchBundle(bundleDir);
  const user = createScriptedUser({ lines: defaultScript });
  for (const environment of [createTauRetail({ bundle }), createTauAirline({ bundle })]) {
    figures.push(...(await measure(environment, user)));
  }
  return figures;
}

async function measure(environment: Environment, user: User): Promise<BenchFigure[]> {
  const { signal } = new AbortController();
  const size = environment.splits["test"] ?? 1;
  const tasks = Array.from({ length: episodeCount }, (_, index) =>
    environment.task("test", index % size),
  );
  const open = (index: number) => {
    const task = tasks[index]!;
    return environment.open(task, { user: user.open(task, { seed: index }), signal });
  };
  const warm = await open(0);
  await talkToTheEnd(warm, signal);
  await warm.score({ signal });
  const worlds: Awaited<ReturnType<typeof open>>[] = [];
  const openMs = await cpuMs(async () => {
    for (let index = 0; index < episodeCount; index++) worlds.push(await open(index));
  });
  for (const world of worlds) await talkToTheEnd(world, signal);
  const scoreMs = await cpuMs(async () => {
    for (const world of worlds) await world.score({ signal });
  });
  const figure = (name: string, total: number): BenchFigure => ({
    bench: "environment",
    figure: name,
    value: total / episodeCount,
    unit: "ms",
    at: environment.name,
  });
  return [figure("CPU to open an episode", openMs), figure("CPU to score an episode", scoreMs)];
}

/** Plays the world to its end without calls, so that scoring compares complete states. */
async function talkToTheEnd(world: World, signal: AbortSignal): Promise<void> {
  await world.begin({ signal });
  for (let lineCount = 0; lineCount < 20; lineCount++) {
    const step = await world.step({ type: "say", content: "I see. Is that all?" }, { signal });
    if (step.done !== undefined) return;
  }
}
