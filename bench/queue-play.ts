import type { Environment } from "../src/environment/environment.ts";
import { prepareStorefront, type StorefrontPlay } from "./storefront-play.ts";

/** Attempts that the benchmarks of the queue hand out. */
export const queuedEpisodes = 300;

/** What hand-out and workers of a benchmark have in common. */
export const benchTerms = { turnwright: "bench" } as const;

/** Episodes whose environment takes so much CPU time each before it answers, in milliseconds. */
export async function prepareBurning(burnMs: number): Promise<StorefrontPlay> {
  const { plan, setup } = await prepareStorefront({ episodeCount: queuedEpisodes, latencyMs: 1 });
  const inner = setup.environment;
  const environment: Environment = {
    ...inner,
    task: (...place) => inner.task(...place),
    async open(...given) {
      burn(burnMs);
      return await inner.open(...given);
    },
  };
  return { plan, setup: { ...setup, environment } };
}

function burn(ms: number): void {
  const before = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(before);
    if (user + system >= ms * 1_000) return;
  }
}
