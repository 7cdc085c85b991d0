/**
 * Kills real runs with SIGKILL at random moments, starts each again until it ends, and compares the
 * result with an undisturbed run: no finished episode lost or doubled, no turn that was on the disk
 * sampled again or missing from the recording, the training rows the same to the byte. Needs a
 * build.
 *
 *     node test/simulation/kill-at-random.mjs [kills, 100] [seed, 1]
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, existsSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chance } from "./chance.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const [wantedKills = "100", seed = "1"] = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), "turnwright-kills-"));

/** The moments are the same for the same seed, as far as the machine goes along. */
const random = chance(Number(seed));

/** Resolves with the exit status, or with `killed`. */
async function play(out, killAfterMs) {
  const main = path.join(root, "dist/src/cli/main.js");
  const flags =
    "--env storefront --user scripted --engine reference --model models/storefront-2m " +
    `--tasks 0-15 --samples 2 --seed 7 --sampling-seed 7 --out ${out}`;
  const child = spawn(process.execPath, [main, "rollout", ...flags.split(" ")], {
    cwd: root,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (data) => (stderr += data));
  const timer =
    killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  return await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      if (signal !== "SIGKILL" && code !== 0) reject(new Error(`exit status ${code}: ${stderr}`));
      else resolve(signal === "SIGKILL" ? "killed" : "ended");
    });
  });
}

/** Complete lines of a file; the text after the last line feed is not a line. */
function linesOf(out, name) {
  const file = path.join(out, name);
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8").split("\n").slice(0, -1);
}

function turnsOnDisk(out) {
  const turns = new Map();
  for (const line of linesOf(out, "recording.jsonl")) {
    const { type, rolloutId, attempt, inputs = [] } = JSON.parse(line);
    if (type !== "inputs") continue;
    for (const input of inputs) {
      if (input.type !== "generation") continue;
      const key = `${rolloutId} ${attempt} ${input.promptHash}`;
      turns.set(key, [...(turns.get(key) ?? []), input.outcome.value?.ids]);
    }
  }
  return turns;
}

function episodesOnDisk(out) {
  return new Map(linesOf(out, "episodes.jsonl").map((line) => [JSON.parse(line).rolloutId, line]));
}

const sums = {
  kills: 0,
  runs: 0,
  lost: 0,
  doubled: 0,
  sampledAgain: 0,
  differing: 0,
  dropped: 0,
  unrecorded: 0,
};
const carried = { episodes: 0, turns: 0 };
const undisturbed = path.join(folder, "undisturbed");
const startedAtMs = performance.now();
await play(undisturbed);
const wholeMs = performance.now() - startedAtMs;
const expected = readFileSync(path.join(undisturbed, "samples.jsonl"));
while (sums.kills < Number(wantedKills)) {
  const out = path.join(folder, `run-${sums.runs}`);
  let killsHere = 0;
  const seen = [];
  for (;;) {
    const mayKill = sums.kills < Number(wantedKills) && killsHere < 12;
    const end = await play(out, mayKill ? 200 + random() * wholeMs * 0.4 : undefined);
    if (end === "ended") break;
    sums.kills += 1;
    killsHere += 1;
    // The current contents of the disk must still be there at the end.
    const before = { turns: turnsOnDisk(out), episodes: episodesOnDisk(out) };
    carried.episodes += before.episodes.size;
    carried.turns += before.turns.size;
    seen.push(before);
  }
  const turns = turnsOnDisk(out);
  const rows = linesOf(out, "episodes.jsonl").map((line) => JSON.parse(line));
  const ids = rows.map(({ rolloutId }) => rolloutId);
  const finished = episodesOnDisk(out);
  sums.doubled += ids.length - new Set(ids).size;
  for (const before of seen) {
    for (const [id, line] of before.episodes) if (finished.get(id) !== line) sums.lost += 1;
    for (const [key, sampled] of before.turns) {
      if (JSON.stringify(turns.get(key)) !== JSON.stringify(sampled)) sums.sampledAgain += 1;
    }
  }
  const turnCount = rows.reduce((sum, row) => sum + row.turns.length, 0);
  const recordedCount = [...turns.values()].reduce((sum, sampled) => sum + sampled.length, 0);
  sums.sampledAgain += Math.max(recordedCount - turnCount, 0);
  sums.unrecorded += Math.max(turnCount - recordedCount, 0);
  sums.dropped += linesOf(out, "events.jsonl").filter((line) =>
    line.includes('"recording-dropped"'),
  ).length;
  if (!readFileSync(path.join(out, "samples.jsonl")).equals(expected)) sums.differing += 1;
  sums.runs += 1;
  console.log(JSON.stringify({ ...sums, carried, turnsInARun: turnCount }));
}
const isSound = ["lost", "doubled", "sampledAgain", "differing", "dropped", "unrecorded"].every(
  (name) => sums[name] === 0,
);
if (isSound) rmSync(folder, { recursive: true });
else console.log(`What is left of the runs: ${folder}`);
process.exitCode = isSound ? 0 : 1;
