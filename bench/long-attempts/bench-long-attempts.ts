import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startSglangTestServer } from "../../src/testing/index.ts";
import { createTextPolicy } from "../../src/testing/policies/text-policy.ts";
import { packRun } from "../../src/run/index.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { qwen3Folder } from "../bench-model.ts";
import { median } from "../cpu-time.ts";

/** Turns of an attempt. Its prompt grows from some 5,000 tokens to some 140,000. */
const turnCount = 43;

/** Attempts that are live at once. */
const attemptCount = 16;

const roundCount = 3;

interface Figures {
  readonly cpuMs: number;
  readonly peakMiB: number;
}

/** Lists of one side, with an entry for each round. */
interface Side {
  readonly cpu: number[];
  readonly peak: number[];
  readonly disk: number[];
}

/**
 * Measures a run in the shape of today's coding agents: attempts of 43 turns, a prompt of 5,000 tokens that grows to
 * 140,000, and some 440 sampled tokens a turn. The command line plays it against a test server in this process, and
 * writes slime's rows. The CPU of a run of single turns is subtracted. The size of the run's folder is measured as written
 * and after `turnwright pack`, whose CPU is measured too.
 *
 *     npm run bench -- --only long-attempts --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchLongAttempts(base?: string): AsyncGenerator<BenchFigure> {
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  const policy = await createTextPolicy(turnTexts(), {
    modelDir: qwen3Folder(),
    otherwise: "Done.",
  });
  await using server = await startSglangTestServer({ policy });
  try {
    const play = async (checkout: string, turns: number): Promise<Figures> =>
      await playRun({ checkout, folder, url: server.url, turns });
    const sides = [ourFolder, ...(base === undefined ? [] : [path.resolve(base)])];
    const found: readonly Side[] = sides.map(() => ({ cpu: [], peak: [], disk: [] }));
    const out = path.join(folder, "run");
    for (let round = 0; round < roundCount; round++) {
      for (const [place, side] of sides.entries()) {
        const start = await play(side, 1);
        const whole = await play(side, turnCount);
        found[place]!.cpu.push((whole.cpuMs - start.cpuMs) / (attemptCount * (turnCount - 1)));
        found[place]!.peak.push(whole.peakMiB);
        found[place]!.disk.push(await bytesPerToken(out));
      }
    }
    const ours = found[0]!;
    const theirs = found[1];
    const figure = (name: string, unit: string, list: keyof Side): BenchFigure => {
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
    yield figure("disk per token, as written", "bytes", "disk");
    yield* await packFigures(out, await play(ourFolder, turnCount));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Packs our last run. Its size as written is the baseline of the packed one, and its CPU that of packing. */
async function packFigures(out: string, played: Figures): Promise<readonly BenchFigure[]> {
  const tokenCount = await tokenCountOf(out);
  const written = (await sizeOf(out)) / tokenCount;
  const before = process.cpuUsage();
  await packRun(out);
  const { user, system } = process.cpuUsage(before);
  const packed = (await sizeOf(out)) / tokenCount;
  const cpuMs = (user + system) / 1000;
  const bench = "long-attempts";
  return [
    {
      bench,
      figure: "disk per token, packed",
      value: packed,
      unit: "bytes",
      baseline: written,
      ratio: written / packed,
    },
    {
      bench,
      figure: "CPU of packing, over that of playing",
      value: cpuMs,
      unit: "ms",
      baseline: played.cpuMs,
      ratio: played.cpuMs / cpuMs,
    },
  ];
}

async function bytesPerToken(dir: string): Promise<number> {
  return (await sizeOf(dir)) / (await tokenCountOf(dir));
}

async function sizeOf(dir: string): Promise<number> {
  let size = 0;
  for (const name of await readdir(dir)) size += (await stat(path.join(dir, name))).size;
  return size;
}

async function tokenCountOf(dir: string): Promise<number> {
  const text = await readFile(path.join(dir, "episodes.jsonl"), "utf8");
  const counts = Array.from(text.matchAll(/"tokenCount":(\d+),"toolCallCount"/g), ([, count]) =>
    Number(count),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

const ourFolder = fileURLToPath(new URL("../../../", import.meta.url));

/** The policy's turns: prose and a call each, of some 440 tokens. */
function turnTexts(): readonly string[] {
  return Array.from({ length: turnCount - 1 }, (_, turn) => {
    const lines = Array.from(
      { length: 30 },
      (_, line) => `Step ${turn}.${line}: compare the file with its test before the next change.`,
    );
    const call = JSON.stringify({ name: "read_file", arguments: { from: turn * 37 + 1 } });
    return `${lines.join("\n")}\n<tool_call>\n${call}\n</tool_call>`;
  });
}

/** Plays a run in a new process of a checkout's command line. */
async function playRun({
  checkout,
  folder,
  url,
  turns,
}: {
  readonly checkout: string;
  readonly folder: string;
  readonly url: string;
  readonly turns: number;
}): Promise<Figures> {
  const out = path.join(folder, "run");
  const figures = path.join(folder, "figures.json");
  await rm(out, { recursive: true, force: true });
  const flags = {
    "--env": path.join(ourFolder, "dist/bench/long-attempts/environment.js"),
    "--split": "test",
    "--tasks": `0-${attemptCount - 1}`,
    "--url": url,
    "--engine-mode": "direct",
    "--model": qwen3Folder(),
    "--parser": "qwen25",
    "--max-turns": String(turns),
    "--concurrency": String(attemptCount),
    "--format": "slime",
    "--out": out,
  };
  const probe = pathToFileURL(path.join(ourFolder, "dist/bench/long-attempts/cpu-probe.js")).href;
  const program = path.join(checkout, "dist/src/cli/main.js");
  const args = ["--import", probe, program, "rollout", ...Object.entries(flags).flat(), "--quiet"];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      LONG_ATTEMPTS_CHECKOUT: checkout,
      LONG_ATTEMPTS_CORPUS: path.join(ourFolder, "src"),
      LONG_ATTEMPTS_FIGURES: figures,
    },
  });
  const [status] = (await once(child, "exit")) as [number | null];
  if (status !== 0) throw new Error(`Cannot play ${program}: it ended with status ${status}`);
  return JSON.parse(await readFile(figures, "utf8")) as Figures;
}
