/**
 * Kills runs with invented side columns at random moments, starts each again until it ends, and checks
 * it: no part is missing, doubled, shifted, or marked with another version of the weights than the one
 * that computed it. The weights change every 70 ms. Every third run plays in one process, every third
 * with two workers that write into the run's folder, and every third with two that write into a shared
 * folder. There, half of the kills hit a worker. Every second run of each kind branches. Needs no build.
 *
 *     node test/columns/kill-columns.mjs [kills, 100] [seed, 1] [longest ms to a kill, 600]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { nodeInput } from "../../scripts/bundle.mjs";
import { chance } from "../simulation/chance.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const [wantedKills, seed, longestMs] = [100, 1, 600].map((value, index) =>
  Number(process.argv[index + 2] ?? value),
);
const random = chance(seed);
/** Then a run ends without more kills, and one of another kind follows. */
const mostInARun = 8;
const folder = mkdtempSync(path.join(tmpdir(), "turnwright-kill-columns-"));
/** Packages that are not bundled are found from here. */
const programs = mkdtempSync(path.join(root, "node_modules", ".kill-columns-"));
const kinds = [
  { name: "one process", flags: ["0", "own"] },
  { name: "two workers", flags: ["2", "own"] },
  { name: "two workers and a shared folder", flags: ["2", "shared"] },
];
const sums = {
  kills: 0,
  workerKills: 0,
  runs: 0,
  rows: 0,
  mixedRows: 0,
  parts: 0,
  recordedParts: 0,
};
const faults = [];

async function bundle() {
  const names = ["invented-run", "invented-worker", "check-killed"];
  const build = await rolldown({
    input: Object.fromEntries(
      names.map((name) => [name, path.join(import.meta.dirname, `${name}.ts`)]),
    ),
    ...nodeInput,
    external: /^(?:tokenizers|bullmq|ioredis)(?:\/|$)/,
  });
  await build.write({
    dir: programs,
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
  });
  await build.close();
}

function workersOf(pid) {
  const { stdout } = spawnSync("ps", ["-eo", "pid=,ppid=,args="], { encoding: "utf8" });
  return stdout.split("\n").flatMap((line) => {
    const [own, parent] = line.trim().split(/\s+/).map(Number);
    return parent === pid && line.includes("invented-worker") ? [own] : [];
  });
}

/** Kills the process, or one of its workers. Returns false if the process was not killed. */
function kill(child) {
  const workers = random() < 0.5 ? workersOf(child.pid) : [];
  sums.kills += 1;
  if (workers.length === 0) return child.kill("SIGKILL");
  sums.workerKills += 1;
  try {
    process.kill(workers[Math.floor(random() * workers.length)], "SIGKILL");
  } catch {
    // It has just ended.
  }
  return false;
}

/** Resolves with true if the process was killed, and with false if it ended well. */
async function play(dir, { flags, last }) {
  const program = path.join(programs, "invented-run.mjs");
  const child = spawn(process.execPath, [program, dir, ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (data) => (stderr += data));
  let timer;
  const plan = () => {
    if (sums.kills >= Math.min(wantedKills, last)) return;
    timer = setTimeout(() => {
      if (!kill(child)) plan();
    }, random() * longestMs);
  };
  // Some die while they start.
  if (random() < 0.15) plan();
  else child.stdout.once("data", plan);
  return await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      if (stderr.includes("result-refused")) faults.push(stderr);
      if (signal === "SIGKILL") resolve(true);
      else if (code === 0) resolve(false);
      // A worker that is killed before it can play ends the start.
      else if (stderr.includes("ended by SIGKILL before it was ready")) resolve(true);
      else reject(new Error(`exit status ${code}: ${stderr}`));
    });
  });
}

try {
  await bundle();
  const checker = pathToFileURL(path.join(programs, "check-killed.mjs")).href;
  const { checkKilled } = await import(checker);
  do {
    const kind = kinds[sums.runs % kinds.length];
    const branches = Math.floor(sums.runs / kinds.length) % 2 === 1 ? "yes" : "no";
    const dir = path.join(folder, `run-${sums.runs}`);
    mkdirSync(dir);
    writeFileSync(path.join(dir, "version"), "1");
    const last = sums.kills + mostInARun;
    while (await play(dir, { flags: [...kind.flags, branches], last }));
    const checked = await checkKilled(path.join(dir, "run"));
    faults.push(...checked.faults.map((fault) => `${dir} (${kind.name}): ${fault}`));
    for (const name of ["rows", "mixedRows", "parts", "recordedParts"]) {
      sums[name] += checked[name];
    }
    sums.runs += 1;
    console.log(JSON.stringify({ ...sums, kind: kind.name, branches, faults: faults.length }));
  } while (sums.kills < wantedKills || sums.runs < kinds.length);
} finally {
  rmSync(programs, { recursive: true });
}
console.log(JSON.stringify({ ...sums, faults: faults.slice(0, 20) }));
if (faults.length === 0) rmSync(folder, { recursive: true });
else console.log(`What is left: ${folder}`);
process.exitCode = faults.length === 0 ? 0 : 1;
