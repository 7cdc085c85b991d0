import type { Environment } from "../../src/environment/environment.ts";
import { prepareStorefront, type StorefrontPlay } from "../storefront-play.ts";

/** Attempts of the queue's benchmarks. */
export const queuedEpisodes = 300;

/** Settings that hand-out and workers of a benchmark share. */
export const benchTerms = { turnwright: "bench" } as const;

/** Creates episodes with an environment that uses `burnMs` of CPU before it answers. */
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
