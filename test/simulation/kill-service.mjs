/**
 * Kills `turnwright serve` with SIGKILL at random moments of one training run, and starts it again on the same
 * folder each time: no group is lost or given twice, a line is the same to the byte however often it is asked
 * for, also in a trainer's form, each token carries a version that was announced when it was sampled, and each
 * batch's folder holds. Needs a build.
 *
 *   node test/simulation/kill-service.mjs [kills, 50] [seed, 1]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chance, freePort } from "./chance.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const main = path.join(root, "dist/src/cli/main.js");
const model = path.join(root, "models/storefront-2m");
const [wantedKills = "50", seed = "1"] = process.argv.slice(2);
const random = chance(Number(seed));
const folder = mkdtempSync(path.join(tmpdir(), "turnwright-kill-service-"));
const data = path.join(folder, "data");
const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const tasksPerStep = 6;
const samples = 2;

const sums = {
  kills: 0,
  steps: 0,
  groups: 0,
  lost: 0,
  twice: 0,
  formed: 0,
  changed: 0,
  wrongVersions: 0,
};
const training = { isOver: false };
let child;

/** Keeps the service running, and kills it until it was killed often enough. */
async function keepKilling() {
  const flags =
    "--env storefront --user scripted --engine reference --threads 1 --concurrency 8 --quiet " +
    `--model ${model} --out ${data} --port ${port}`;
  while (!training.isOver) {
    child = spawn(process.execPath, [main, "serve", ...flags.split(" ")], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (text) => (stderr += text));
    const ended = new Promise((resolve) => child.on("exit", (...how) => resolve(how)));
    // Moments are counted from when it listens, some from before.
    const isEarly = random() < 0.2;
    if (!isEarly)
      await Promise.race([new Promise((resolve) => child.stdout.once("data", resolve)), ended]);
    let timer;
    if (sums.kills < Number(wantedKills)) {
      timer = setTimeout(() => child.kill("SIGKILL"), isEarly ? random() * 800 : random() * 4_000);
    }
    const [code, signal] = await ended;
    clearTimeout(timer);
    if (signal === "SIGKILL") sums.kills += 1;
    else if (!training.isOver)
      throw new Error(`The service ended with ${code ?? signal}: ${stderr}`);
  }
}

/** Makes a call until it is answered. */
async function call(method, at, body) {
  for (;;) {
    try {
      const init = { method, headers: { "content-type": "application/json" } };
      const reply = await fetch(
        url + at,
        body === undefined ? init : { ...init, body: JSON.stringify(body) },
      );
      if (reply.status < 300) return await reply.json();
      if (reply.status !== 503) throw new Error(`${method} ${at} answered ${await reply.text()}`);
    } catch (error) {
      if (!(error instanceof TypeError) && error.name !== "SyntaxError") throw error;
    }
    await sleep(50);
  }
}

/** The lines of groups after a cursor, over as many streams as needed. */
async function* groupLines(batch, cursor) {
  for (;;) {
    try {
      const reply = await fetch(`${url}/v1/groups?batch=${batch}&cursor=${cursor}`);
      if (reply.status === 404) throw new Error(`The service has forgotten ${batch}`);
      let rest = "";
      for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + text).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const { type, cursor: at, state } = JSON.parse(line);
          if (type === "end" && state !== "stopping") return;
          if (type !== "group") continue;
          cursor = at;
          yield line;
        }
      }
    } catch (error) {
      // The connection broke.
      if (!(error instanceof TypeError)) throw error;
    }
    await sleep(50);
  }
}

/**
 * A group in a trainer's form; `undefined` if the service died, or the reader acknowledged the group.
 */
async function inForm(batch, cursor) {
  try {
    const reply = await fetch(`${url}/v1/groups?batch=${batch}&cursor=${cursor - 1}&format=verl`);
    let text = "";
    if (!reply.ok) return undefined;
    for await (const more of reply.body.pipeThrough(new TextDecoderStream())) {
      text += more;
      if (text.includes("\n")) return text.slice(0, text.indexOf("\n"));
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  return undefined;
}

const killing = keepKilling();
const seen = new Map();
const formed = new Map();
while (sums.kills < Number(wantedKills)) {
  const version = sums.steps;
  await call("POST", "/v1/policy", { version, weights: model });
  const first = Math.floor(random() * 100);
  const tasks = Array.from({ length: tasksPerStep }, (_, index) => first + index);
  const asked = { key: `step-${version}`, split: "train", tasks, samples, seed: version * 1000 };
  const { batch } = await call("POST", "/v1/batches", asked);
  const received = new Map();
  let safe = 0;
  for (let isDone = false; !isDone;) {
    isDone = true;
    for await (const line of groupLines(batch, safe)) {
      const { cursor, group } = JSON.parse(line);
      const before = seen.get(cursor);
      if (before !== undefined && before !== line) sums.changed += 1;
      if (before === undefined && received.has(group.taskIndex)) sums.twice += 1;
      seen.set(cursor, line);
      received.set(group.taskIndex, group);
      const form = random() < 0.5 ? await inForm(batch, cursor) : undefined;
      if (form !== undefined && JSON.parse(form).cursor === cursor) {
        const { records, refused } = JSON.parse(form).group;
        const steps = records.map(({ extra_fields: { min_global_steps: least } }) => least);
        if (refused !== undefined || steps.some((step) => step !== version))
          sums.wrongVersions += 1;
        if ((formed.get(cursor) ?? form) !== form) sums.changed += 1;
        formed.set(cursor, form);
        sums.formed += 1;
      }
      const dice = random();
      if (dice < 0.3) {
        safe = cursor;
        if (dice < 0.15) await call("POST", "/v1/groups/ack", { cursor });
      } else if (dice < 0.45) {
        // The reader died: it continues from its stored cursor.
        isDone = false;
        break;
      }
    }
  }
  sums.lost += tasks.filter((task) => !received.has(task)).length;
  for (const { attempts } of received.values()) {
    if (attempts.length !== samples || attempts.some(({ rows }) => rows.length === 0))
      sums.lost += 1;
    for (const { policyVersions, lossMask } of attempts.flatMap(({ rows }) => rows)) {
      if (
        policyVersions.some((each, index) => each !== (lossMask[index] === 1 ? `${version}` : ""))
      ) {
        sums.wrongVersions += 1;
      }
    }
  }
  sums.groups += received.size;
  sums.steps += 1;
  console.log(JSON.stringify(sums));
}
training.isOver = true;
child.kill("SIGTERM");
await killing;
let violations = 0;
for (const batch of readdirSync(path.join(data, "batches"))) {
  const { status, stdout } = spawnSync(process.execPath, [
    main,
    "verify",
    path.join(data, "batches", batch),
  ]);
  if (status !== 0) {
    violations += 1;
    console.log(`${batch}: ${String(stdout)}`);
  }
}
console.log(JSON.stringify({ ...sums, violations }));
const isSound = ["lost", "twice", "changed", "wrongVersions"].every((name) => sums[name] === 0);
if (isSound && violations === 0) rmSync(folder, { recursive: true });
else console.log(`What is left: ${folder}`);
process.exitCode = isSound && violations === 0 ? 0 : 1;
