import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { startSglangTestServer } from "../../src/testing/index.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { median } from "../cpu-time.ts";
import {
  attemptCount,
  createLongPolicy,
  type Figures,
  ourFolder,
  playAttempts,
  turnCount,
} from "./play-attempts.ts";

const roundCount = 3;

/**
 * Measures a run in the shape of today's coding agents: attempts of 43 turns, a prompt of 5,000 tokens that grows to
 * 140,000, and some 440 sampled tokens a turn. The command line plays it against a test server in this process, and
 * writes slime's rows. The CPU of a run of single turns is subtracted.
 *
 *     npm run bench -- --only long-attempts --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchLongAttempts(base?: string): AsyncGenerator<BenchFigure> {
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  await using server = await startSglangTestServer({ policy: await createLongPolicy() });
  try {
    const out = path.join(folder, "run");
    const play = async (checkout: string, turns: number): Promise<Figures> => {
      await rm(out, { recursive: true, force: true });
      return (await playAttempts({ checkout, out, url: server.url, turns }))!;
    };
    const sides = [ourFolder, ...(base === undefined ? [] : [path.resolve(base)])];
    const found = sides.map(() => ({ cpu: [] as number[], peak: [] as number[] }));
    for (let round = 0; round < roundCount; round++) {
      for (const [place, side] of sides.entries()) {
        const start = await play(side, 1);
        const whole = await play(side, turnCount);
        found[place]!.cpu.push((whole.cpuMs - start.cpuMs) / (attemptCount * (turnCount - 1)));
        found[place]!.peak.push(whole.peakMiB);
      }
    }
    const ours = found[0]!;
    const theirs = found[1];
    const figure = (name: string, unit: string, list: "cpu" | "peak"): BenchFigure => {
      const value = median(ours[list]);
      const baseline = theirs && median(theirs[list]);
      return {
        bench: "long-attempts",
        figure: name,
        value,
        unit,
        ...(baseline !== undefined && { baseline, ratio: baseline / value }),
      };
    };
    yield figure("CPU per turn", "ms", "cpu");
    yield figure(`peak memory, ${attemptCount} attempts live`, "MiB", "peak");
  } finally {
    await rm(folder, { recursive: true });
  }
}
