/**
 * Kills `turnwright serve` with SIGKILL at random moments while it plays and streams attempts with one
 * to five rows: of our own agent, whose history the template rewrites, and of an agent of its own with
 * sub-agents and compaction. The reader connects again, asks again with its cursor, acknowledges some
 * groups, and reads some in trainers' forms. No attempt is delivered in part, no group is lost, and none
 * comes again after its acknowledgement. Rows equal those in the run's folder. Needs a build.
 *
 *     node test/service/kill-several-rows.mjs [kills, 50] [seed, 1] [attempts a group, 8] [longest ms to a kill, 4000]
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chance } from "../simulation/chance.mjs";
import { diskFaults, formats, formFaults, groupFaults, hashesOnDisk } from "./delivered-group.mjs";
import { GroupsReader } from "./groups-reader.mjs";
import { KilledService } from "./killed-service.mjs";
import { copyWithRewriting } from "./split-model.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const [wantedKills, seed, samples, longestMs] = [50, 1, 8, 4_000].map((value, index) =>
  Number(process.argv[index + 2] ?? value),
);
const folder = mkdtempSync(path.join(tmpdir(), "turnwright-kill-rows-"));
const model = path.join(root, "models/storefront-2m");
const splitModel = path.join(folder, "model");
copyWithRewriting(model, splitModel);
const tasksPerBatch = 2;

const random = chance(seed);
const faults = [];
const sums = {
  kills: 0,
  killsInStream: 0,
  cutLines: 0,
  streams: 0,
  batches: 0,
  groups: 0,
  deliveries: 0,
  formed: 0,
  acknowledged: 0,
  goneAnswers: 0,
  /** Attempts by their number of rows. */
  attempts: {},
};

/** Plays batches until the service was killed often enough, then checks its folders. */
async function playWith(name, flags, kills) {
  const data = path.join(folder, name);
  const common = "--env storefront --user scripted --engine reference --threads 1 --concurrency 4";
  const args = [...common.split(" "), ...flags, "--out", data];
  const service = await KilledService.start(args, { kills, seed: seed + kills, longestMs });
  const reader = new GroupsReader(service);
  const trainer = new Trainer(reader, data);
  for (let step = 0; service.kills < kills; step++) {
    await trainer.step(step);
    console.log(`${name}: ${service.kills} kills, ${faults.length} faults`);
  }
  await service.end();
  sums.kills += service.kills;
  sums.killsInStream += service.killsInStream;
  sums.cutLines += reader.cutLines;
  sums.streams += reader.streams;
  faults.push(...service.troubles);
  sums.acknowledged += trainer.acknowledgedCount;
  trainer.checkFolders();
}

/** Asks for batches and checks what comes. */
class Trainer {
  #reader;
  #data;
  /** The lines of all groups, by cursor. */
  #lines = new Map();
  /** The groups of batches, by batch and cursor. */
  #groups = new Map();
  #acknowledged = new Set();
  /** All groups up to this cursor are acknowledged. */
  #upTo = 0;

  constructor(reader, data) {
    this.#reader = reader;
    this.#data = data;
  }

  get acknowledgedCount() {
    return this.#acknowledged.size;
  }

  /** Plays two batches at once under a new version of the policy. */
  async step(version) {
    await this.#reader.call("POST", "/v1/policy", { version });
    const asked = [];
    for (const part of ["a", "b"]) {
      const first = Math.floor(random() * 100);
      const tasks = Array.from({ length: tasksPerBatch }, (_, index) => first + index);
      const request = { key: `${version}${part}`, split: "train", tasks, samples, seed: version };
      const { batch } = await this.#reader.call("POST", "/v1/batches", request);
      this.#groups.set(batch, new Map());
      asked.push({ batch, tasks });
    }
    while (asked.some(({ batch }) => this.#groups.get(batch).size < tasksPerBatch)) {
      const open = asked.filter(({ batch }) => this.#groups.get(batch).size < tasksPerBatch);
      if (random() < 0.5) await this.#read(asked);
      else await this.#read(asked, open[Math.floor(random() * open.length)].batch);
      await sleep(50);
    }
    for (const { batch, tasks } of asked) await this.#recount(batch, tasks);
    sums.batches += asked.length;
  }

  /** Reads one stream, of a batch or of all groups, until its reader leaves or it breaks. */
  async #read(asked, batch) {
    const query = batch === undefined ? "" : `&batch=${batch}`;
    const cursor = this.#safeCursor(batch);
    for await (const line of this.#reader.stream(`cursor=${cursor}${query}`)) {
      if (line.type === "error")
        faults.push(`cursor ${cursor} ${query}: ${line.text ?? line.message}`);
      if (line.type !== "group") continue;
      this.#take(line);
      const dice = random();
      if (dice < 0.3) await this.#readFormed(line);
      else if (dice < 0.7) await this.#acknowledge(line, batch);
      const isComplete = asked.every((one) => this.#groups.get(one.batch).size === tasksPerBatch);
      // Otherwise the reader died, and continues from an older cursor.
      if (isComplete || random() < 0.15) return;
    }
  }

  /** Returns a cursor that the reader may continue from: its last one, or an older one. */
  #safeCursor(batch) {
    const cursors = [...(batch === undefined ? this.#lines : this.#groups.get(batch)).keys()];
    const acknowledged = cursors.filter((cursor) => this.#acknowledged.has(cursor));
    const least = batch === undefined ? this.#upTo : Math.max(this.#upTo, ...acknowledged);
    const whole = cursors.sort((one, other) => one - other);
    // A reader of all groups must not skip those that only a batch's stream has given.
    const last =
      batch === undefined ? whole.findLast((cursor, index) => cursor === index + 1) : whole.at(-1);
    return random() < 0.3 ? least : Math.max(least, last ?? 0);
  }

  /** Checks a group that arrived. */
  #take({ cursor, group, text }) {
    sums.deliveries += 1;
    if (this.#acknowledged.has(cursor))
      faults.push(`group ${cursor} came after its acknowledgement`);
    const before = this.#lines.get(cursor);
    if (before !== undefined && before !== text) faults.push(`group ${cursor} has changed`);
    if (before !== undefined) return;
    const ofBatch = this.#groups.get(group.batch);
    if ([...ofBatch.values()].some(({ groupId }) => groupId === group.groupId))
      faults.push(`group ${cursor} is a second ${group.groupId} of ${group.batch}`);
    this.#lines.set(cursor, text);
    ofBatch.set(cursor, group);
    sums.groups += 1;
    for (const { rows } of group.attempts)
      sums.attempts[rows.length] = (sums.attempts[rows.length] ?? 0) + 1;
    const onDisk = hashesOnDisk(this.#folderOf(group.batch));
    const found = [...groupFaults(group, samples), ...diskFaults(group, onDisk)];
    faults.push(...found.map((fault) => `group ${cursor}: ${fault}`));
  }

  /** Asks for a group in a trainer's form. The service may die meanwhile. */
  async #readFormed({ cursor, group }) {
    const format = formats[Math.floor(random() * formats.length)];
    const query = `batch=${group.batch}&cursor=${cursor - 1}&format=${format}`;
    for await (const line of this.#reader.stream(query)) {
      if (line.type !== "group" || line.cursor !== cursor) continue;
      faults.push(...formFaults(line.group, group));
      sums.formed += 1;
      return;
    }
  }

  async #acknowledge({ cursor, group: { batch: own } }, batch) {
    // A reader of all groups acknowledges only what it has without gaps.
    const isAll = batch === undefined && this.#lines.size >= cursor && random() < 0.5;
    const body = isAll ? { cursor } : { cursor, batch: own };
    if (!isAll && !this.#hasAllUpTo(cursor, own)) return;
    await this.#reader.call("POST", "/v1/groups/ack", body);
    if (isAll) this.#upTo = Math.max(this.#upTo, cursor);
    for (const each of isAll ? this.#lines.keys() : this.#groups.get(own).keys())
      if (each <= cursor) this.#acknowledged.add(each);
  }

  /** True if no group of a batch before a cursor is missing: no other cursor up to it is unknown. */
  #hasAllUpTo(cursor, batch) {
    const first = Math.min(...this.#groups.get(batch).keys());
    for (let each = first; each <= cursor; each++) if (!this.#lines.has(each)) return false;
    return true;
  }

  /** Reads a finished batch again: exactly the groups without acknowledgement come, unchanged. */
  async #recount(batch, tasks) {
    const groups = this.#groups.get(batch);
    const given = [...groups.values()].map(({ taskIndex }) => taskIndex);
    if (given.sort((one, other) => one - other).join() !== tasks.join())
      faults.push(`${batch} gave the tasks ${given.join()} of ${tasks.join()}`);
    const wanted = [...groups.keys()].filter((cursor) => !this.#acknowledged.has(cursor));
    const from = Math.max(0, ...[...groups.keys()].filter((each) => this.#acknowledged.has(each)));
    for (let isDone = false; !isDone; await sleep(50)) {
      const again = [];
      for await (const line of this.#reader.stream(`batch=${batch}&cursor=${from}`)) {
        if (line.type === "group") {
          this.#take(line);
          again.push(line.cursor);
        } else if (line.type === "error") throw new Error(`recount of ${batch}: ${line.message}`);
        isDone = line.type === "end" && line.state === "finished";
      }
      if (isDone && again.join() !== wanted.sort((one, other) => one - other).join())
        faults.push(`${batch} gave ${again.join()} again of ${wanted.join()}`);
    }
    if (from > 0) await this.#askForForgotten(batch);
  }

  /** Asks for groups of a batch that were acknowledged: the service refuses. */
  async #askForForgotten(batch) {
    for (;;) {
      for await (const { type, status } of this.#reader.stream(`batch=${batch}&cursor=0`)) {
        if (type !== "error" || status !== 410) faults.push(`${batch} answered ${type} ${status}`);
        sums.goneAnswers += 1;
        return;
      }
      await sleep(50);
    }
  }

  /** Compares all delivered groups with the folders of the batches, and verifies these. */
  checkFolders() {
    for (const [batch, groups] of this.#groups) {
      const onDisk = hashesOnDisk(this.#folderOf(batch));
      for (const group of groups.values()) faults.push(...diskFaults(group, onDisk));
      if (onDisk.size !== tasksPerBatch * samples)
        faults.push(`${batch} has ${onDisk.size} attempts`);
    }
    for (const batch of readdirSync(path.join(this.#data, "batches"))) {
      const command = [path.join(root, "dist/src/cli/main.js"), "verify", this.#folderOf(batch)];
      const { status, stdout } = spawnSync(process.execPath, command, { encoding: "utf8" });
      if (status !== 0) faults.push(`verify ${batch}: ${stdout}`);
    }
  }

  #folderOf(batch) {
    return path.join(this.#data, "batches", batch);
  }
}

const ownKills = Math.ceil(wantedKills / 2);
const agent = path.join(import.meta.dirname, "several-rows-agent.mjs");
await playWith("split", ["--model", splitModel, "--history", "split"], ownKills);
await playWith("agent", ["--model", model, "--agent", agent], wantedKills - ownKills);
console.log(JSON.stringify({ ...sums, faults }));
if (faults.length === 0) rmSync(folder, { recursive: true });
else console.log(`What is left: ${folder}`);
process.exitCode = faults.length === 0 ? 0 : 1;
