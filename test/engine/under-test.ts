import type { Engine } from "../../src/engine/engine.ts";
import type { ManualClock } from "../../src/testing/index.ts";
import { createManualClock } from "../../src/testing/index.ts";

/** A server, an engine that is connected to it, and the clock that the engine waits by. */
export interface Tested<Server, TestedEngine> extends AsyncDisposable {
  readonly server: Server;
  readonly engine: TestedEngine;
  readonly clock: ManualClock;
}

/** Settings that every engine of a test has. */
export interface Connection extends Pick<ManualClock, "now" | "sleep"> {
  readonly url: string;
  readonly random: () => number;
}

/** Longest back-off that takes no time. */
const LONGEST_BACK_OFF_MS = 60_000;

/**
 * Connects an engine to a server. By default its back-off takes no time and its deadlines, which must
 * be longer than a minute, stand still. Disposing it closes both.
 */
export function underTest<
  Server extends { readonly url: string; close(): Promise<void> },
  TestedEngine extends Engine,
>(
  server: Server,
  connect: (connection: Connection) => TestedEngine,
  clock: ManualClock = createManualClock({ skipUpToMs: LONGEST_BACK_OFF_MS }),
): Tested<Server, TestedEngine> {
  const { now, sleep } = clock;
  const engine = connect({ url: server.url, now, sleep, random: () => 0.5 });
  return {
    server,
    engine,
    clock,
    async [Symbol.asyncDispose]() {
      await engine.close();
      await server.close();
    },
  };
}

/** The waits between attempts, without the deadlines. */
export function backOff({ sleeps }: ManualClock): number[] {
  return sleeps.filter((ms) => ms <= LONGEST_BACK_OFF_MS);
}

/** The samples of `toRequest()` if `createScriptedPolicy()` has these ids. */
export const SAMPLED = {
  outputIds: [10, 11, 12, 2],
  logprobs: [-0.0625, -0.125, -0.1875, -0.25],
  finish: { type: "stop", matched: 2 },
};
