import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { withResolvers } from "../../src/async/with-resolvers.ts";
import { startSglangTestServer } from "../../src/testing/index.ts";
import type { ServerPolicy } from "../../src/testing/policies/server-policy.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { against, checkoutsOf } from "../checkouts.ts";
import { median } from "../cpu-time.ts";
import { attemptCount, createLongPolicy, playAttempts, turnCount } from "./play-attempts.ts";

const roundCount = 3;

/** CPU before the first request to the engine, in milliseconds. */
interface StartCost {
  readonly fresh: number[];
  readonly resumed: number[];
}

/**
 * Measures the cost of resuming a run of 16 long attempts that was killed after half of its turns: the CPU before the
 * first new request to the engine, less that of a fresh start.
 *
 *     npm run bench -- --only resume --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchResume(base?: string): AsyncGenerator<BenchFigure> {
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  const policy = await createLongPolicy();
  const sides = checkoutsOf(base);
  const costs = sides.map((): StartCost => ({ fresh: [], resumed: [] }));
  try {
    for (let round = 0; round < roundCount; round++) {
      for (const [place, side] of sides.entries()) {
        const out = path.join(folder, `run-${round}-${place}`);
        await measureStarts(side, { out, policy, cost: costs[place]! });
        await rm(out, { recursive: true });
      }
    }
    yield toFigure("CPU of a fresh start", costs, ({ fresh }) => median(fresh));
    yield toFigure("CPU of a resumed start", costs, ({ resumed }) => median(resumed));
    yield toFigure("CPU of a resumed start, above a fresh one's", costs, above);
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Measured {
  readonly out: string;
  readonly policy: ServerPolicy;
  readonly cost: StartCost;
}

/** Kills a run in its middle, starts it again, and starts another one. */
async function measureStarts(checkout: string, { out, policy, cost }: Measured): Promise<void> {
  const half = withResolvers();
  let requestCount = 0;
  const counting: ServerPolicy = {
    ...policy,
    begin(request) {
      requestCount += 1;
      if (requestCount > (attemptCount * turnCount) / 2) half.resolve();
      return policy.begin(request);
    },
  };
  await using server = await startSglangTestServer({ policy: counting });
  const run = { checkout, url: server.url, turns: turnCount };
  await playAttempts({ ...run, out, kill: half.promise });
  const resumed = await playAttempts({ ...run, out, endsAtRequest: true });
  const fresh = await playAttempts({ ...run, out: `${out}-fresh`, endsAtRequest: true });
  cost.resumed.push(resumed!.cpuMs);
  cost.fresh.push(fresh!.cpuMs);
}

function above({ fresh, resumed }: StartCost): number {
  return median(resumed.map((cpu, round) => cpu - fresh[round]!));
}

function toFigure(
  figure: string,
  [ours, theirs]: readonly StartCost[],
  valueOf: (cost: StartCost) => number,
): BenchFigure {
  const value = valueOf(ours!);
  const baseline = theirs && valueOf(theirs);
  return { bench: "resume", figure, value, unit: "ms", ...against(value, baseline) };
}
