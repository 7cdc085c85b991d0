/**
 * Plays one run on workers of a queue while faults happen at random: workers are killed with
 * SIGKILL, the store is killed and started again, connections to it are cut, delayed or swallowed.
 * Then compares the folder with a run on one process: each attempt once, the training rows the same
 * to the byte. Needs a build, and `valkey-server` or `redis-server`.
 *
 *     node test/queue/kill-at-random.mjs [kills of workers, 200] [attempts, 2000] [seed, 1]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { chance, freePort } from "../simulation/chance.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const main = path.join(root, "dist/src/cli/main.js");
const [wantedKills = "200", attempts = "2000", seed = "1"] = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), "turnwright-queue-kills-"));
const workerCount = 2;

/** The moments are the same for the same seed, as far as the machine goes along. */
const random = chance(Number(seed));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const samples = 8;
const tasks = Math.ceil(Number(attempts) / samples);
const flags = (
  "--env storefront --user scripted --engine reference --model models/storefront-2m --threads 1 " +
  "--max-turns 3 --max-tokens-per-turn 24 --split train --sampling-seed 7 --seed 7"
).split(" ");

const server = ["valkey-server", "redis-server"].find(
  (name) => spawnSync(name, ["--version"]).status === 0,
);
if (server === undefined) {
  console.log("skipped: neither valkey-server nor redis-server is installed");
  process.exit(0);
}

const children = new Set();
function start(command, args, name) {
  const child = spawn(command, args, { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
  child.output = "";
  child.stderr.on("data", (data) => (child.output = (child.output + data).slice(-20_000)));
  child.done = new Promise((resolve) =>
    child.once("exit", (code, signal) => resolve(signal ?? code)),
  );
  child.name = name;
  children.add(child);
  void child.done.then(() => children.delete(child));
  return child;
}
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

const storePort = await freePort();
let store;
function startStore() {
  mkdirSync(path.join(folder, "store"), { recursive: true });
  const args = ["--port", storePort, "--dir", path.join(folder, "store"), "--save", ""];
  store = start(
    server,
    [...args.map(String), "--appendonly", "yes", "--appendfsync", "everysec"],
    "store",
  );
}

/** A proxy for all connections to the store, which can cut, delay or swallow them. */
const proxy = { mode: "open", delayMs: 0, sockets: new Set() };
const proxyServer = net.createServer((socket) => {
  if (proxy.mode === "closed") {
    socket.destroy();
    return;
  }
  const upstream = net.connect(storePort, "127.0.0.1");
  proxy.sockets.add(socket);
  const pass = (from, to) => {
    let last = Promise.resolve();
    from.on("data", (data) => {
      if (proxy.mode === "swallow") return;
      if (proxy.delayMs === 0) {
        last = last.then(() => void to.write(data));
        return;
      }
      const delayed = sleep(proxy.delayMs);
      last = last.then(() => delayed).then(() => void to.write(data));
    });
  };
  pass(socket, upstream);
  pass(upstream, socket);
  const end = () => {
    socket.destroy();
    upstream.destroy();
    proxy.sockets.delete(socket);
  };
  for (const side of [socket, upstream]) {
    side.on("error", end);
    side.on("close", end);
  }
});
await new Promise((resolve) => proxyServer.listen(0, "127.0.0.1", resolve));
const url = `redis://127.0.0.1:${proxyServer.address().port}`;
const cut = () => {
  for (const socket of Array.from(proxy.sockets)) socket.destroy();
};

function linesOf(out, name) {
  return readFileSync(path.join(out, name), "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

const plain = path.join(folder, "one-process");
const handed = path.join(folder, "handed-out");
const scope = ["--tasks", `0-${tasks - 1}`, "--samples", String(samples)];
let startedAtMs = performance.now();
const one = start(
  process.execPath,
  [main, "rollout", ...flags, ...scope, "--out", plain, "--quiet"],
  "one",
);
if ((await one.done) !== 0) throw new Error(`one process: ${one.output}`);
const oneS = (performance.now() - startedAtMs) / 1000;
console.log(`one process: ${oneS.toFixed(0)} s`);

startStore();
await sleep(500);
const shared = ["--queue", url, "--shared", path.join(folder, "shared")];
let workerNumber = 0;
const startWorker = () =>
  start(
    process.execPath,
    [
      main,
      "worker",
      ...flags,
      ...shared,
      "--concurrency",
      "16",
      "--lease",
      "4",
      "--name",
      `w${++workerNumber}`,
    ],
    `w${workerNumber}`,
  );
startedAtMs = performance.now();
const run = start(
  process.execPath,
  [main, "rollout", ...flags, ...scope, ...shared, "--concurrency", "128", "--out", handed],
  "run",
);
let workers = Array.from({ length: workerCount }, startWorker);
const counts = { kills: 0, storeRestarts: 0, cuts: 0, delays: 0, swallowed: 0, died: 0 };
while (children.has(run)) {
  await Promise.race([sleep(300 + random() * 1_000), run.done]);
  if (!children.has(run)) break;
  // One that died by itself is a fault, unless the store was away while it started.
  for (const [index, worker] of workers.entries()) {
    if (children.has(worker)) continue;
    counts.died += 1;
    if (!/Cannot reach the queue's store/.test(worker.output))
      console.log(`${worker.name} died: ${worker.output}`);
    workers[index] = startWorker();
  }
  // The rest of the run is undisturbed.
  if (counts.kills >= Number(wantedKills)) continue;
  const dice = random();
  if (dice < 0.75) {
    const index = Math.floor(random() * workers.length);
    workers[index].kill("SIGKILL");
    await workers[index].done;
    workers[index] = startWorker();
    counts.kills += 1;
  } else if (dice < 0.81) {
    store.kill("SIGKILL");
    await store.done;
    await sleep(random() * 1_000);
    startStore();
    counts.storeRestarts += 1;
  } else if (dice < 0.9) {
    proxy.mode = random() < 0.5 ? "closed" : "open";
    cut();
    await sleep(random() * 1_500);
    proxy.mode = "open";
    counts.cuts += 1;
  } else if (dice < 0.96) {
    proxy.delayMs = Math.floor(random() * 300);
    await sleep(random() * 3_000);
    proxy.delayMs = 0;
    counts.delays += 1;
  } else {
    proxy.mode = "swallow";
    await sleep(random() * 6_000);
    proxy.mode = "open";
    // Swallowed bytes are lost: TCP would not continue either.
    cut();
    counts.swallowed += 1;
  }
  if ((counts.kills + counts.storeRestarts) % 20 === 0) {
    console.log(
      JSON.stringify({ ...counts, s: Math.round((performance.now() - startedAtMs) / 1000) }),
    );
  }
}
const status = await run.done;
const handedS = (performance.now() - startedAtMs) / 1000;
for (const worker of workers) worker.kill("SIGKILL");
store.kill("SIGKILL");
proxyServer.close();
cut();

const rows = linesOf(handed, "episodes.jsonl");
const ids = rows.map(({ rolloutId }) => rolloutId);
const events = linesOf(handed, "events.jsonl");
const again = events.filter(({ type }) => type === "attempt-played-again");
const verified = spawnSync(process.execPath, [main, "verify", handed], {
  cwd: root,
  encoding: "utf8",
});
const result = {
  status,
  ...counts,
  attempts: rows.length,
  doubled: ids.length - new Set(ids).size,
  missing: tasks * samples - new Set(ids).size,
  failed: rows.filter(({ outcome }) => outcome === "failed").length,
  sameRows: readFileSync(path.join(handed, "samples.jsonl")).equals(
    readFileSync(path.join(plain, "samples.jsonl")),
  ),
  verified: verified.status === 0,
  playedAgain: again.length,
  fromRecording: again.filter(({ from }) => from === "recording").length,
  refused: events.filter(({ type }) => type === "result-refused").length,
  onOneProcessS: Math.round(oneS),
  handedOutS: Math.round(handedS),
};
console.log(JSON.stringify(result));
const isSound =
  status === 0 &&
  result.doubled === 0 &&
  result.missing === 0 &&
  result.sameRows &&
  result.verified;
if (isSound) rmSync(folder, { recursive: true });
else console.log(`run: ${run.output}\nWhat is left: ${folder}`);
process.exit(isSound ? 0 : 1);
