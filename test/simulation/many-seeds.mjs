/**
 * Plays simulated runs on all cores for a while, to find faults too rare for the tests' seeds.
 *
 *     node test/simulation/many-seeds.mjs [seconds, 60] [first seed, drawn] [processes, number of cores]
 *
 * With SIMULATION_QUEUE=1 workers play in each run. Each failing seed is printed with the command
 * that plays it again, and the exit status is then 1.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { rolldown } from "rolldown";
import { nodeInput } from "../../scripts/bundle.mjs";

const [seconds = "60", first = String(Math.floor(Math.random() * 1e9)), processes] =
  process.argv.slice(2);
const processCount = Number(processes ?? availableParallelism());
/** More than one process plays in hours. */
const seedsApart = 1_000_000;
const queue = process.env.SIMULATION_QUEUE;
const setting = queue === undefined ? "" : `SIMULATION_QUEUE=${queue} `;

const folder = mkdtempSync(path.join(tmpdir(), "turnwright-seeds-"));
const sums = { seeds: 0, processes: 0, turns: 0 };
let failedCount = 0;
try {
  const main = path.join(folder, "seeds-main.mjs");
  const build = await rolldown({
    input: path.join(import.meta.dirname, "seeds-main.ts"),
    ...nodeInput,
    external: /^(?:tokenizers|bullmq|ioredis)(?:\/|$)/,
  });
  await build.write({ file: main, format: "esm", codeSplitting: false });
  await build.close();
  await Promise.all(
    Array.from({ length: processCount }, (_, index) =>
      play(main, Number(first) + index * seedsApart),
    ),
  );
} finally {
  rmSync(folder, { recursive: true });
}
console.log(
  `${sums.seeds} simulated runs from seed ${first} on: ${sums.processes} processes, ${sums.turns} policy calls, ` +
    `${failedCount} failed`,
);
process.exitCode = failedCount === 0 ? 0 : 1;

/** One process, from a seed on. */
async function play(main, seed) {
  const child = spawn(process.execPath, [main, String(seed), seconds], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  let isWhole = false;
  for await (const line of createInterface({ input: child.stdout })) {
    const report = JSON.parse(line);
    if (report.sums !== undefined) {
      isWhole = true;
      for (const name of Object.keys(sums)) sums[name] += report.sums[name];
      continue;
    }
    failedCount += 1;
    const again = `${setting}SIMULATION_SEED=${report.seed} npx vitest run test/simulation`;
    console.log([`seed ${report.seed}; play it again with: ${again}`, ...report.wrong].join("\n"));
  }
  const status = await ended;
  if (!isWhole) throw new Error(`the process that started with seed ${seed} ended with ${status}`);
}
