// Shows that the simulation can fail: plants one bug after the other in a copy of the sources, and says how
// many seeds it takes until one fails. Usage: node test/simulation/plant-bugs.mjs [--seeds N] [--only WORDS]
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Each: what goes wrong, in which file, and how its text changes. */
const bugs = [
  [
    "lines are not synced",
    "run/jsonl-journal.ts",
    "await this.#file.sync();\n      await this.#assertOwn",
    "await this.#assertOwn",
  ],
  [
    "the name of a new file is not synced",
    "run/jsonl-journal.ts",
    "await files.syncFolder(path.dirname(file));",
    "",
  ],
  [
    "the lock is taken without a look at who holds it",
    "run/run-lock.ts",
    "await waitForLock({ ...judge, own: holder, draft }, file, options);",
    "",
  ],
  [
    "an episode whose last inputs the disk refused is finished",
    "run/start-run.ts",
    "await this.#recording?.land();",
    "await this.#recording?.flush();",
  ],
  [
    "the kinds of two spans are swapped in the mask",
    "trajectory/trajectory-recorder.ts",
    "lossMask: lossMask(ledger.spans),",
    "lossMask: lossMask(ledger.spans.map((span, at) => at === 1 || at === 2 ? { ...span, kind: ledger.spans[3 - at]?.kind ?? span.kind } : span)),",
  ],
  [
    "a turn's ids are recorded in another order",
    "trajectory/trajectory-recorder.ts",
    "ledger.appendSampled(turnIndex, generation);",
    "ledger.appendSampled(turnIndex, { ...generation, outputIds: generation.outputIds.toReversed() });",
  ],
  ["recorded lines are not numbered", "run/recording-journal.ts", "part += 1;", ""],
  [
    "a turn that was cut short counts as whole when it goes on",
    "episode/sample-turn.ts",
    "if (sampled.isPartial !== true) return {",
    "return {",
  ],
  [
    "an interrupted turn is asked for from its start",
    "run/policy-gate.ts",
    "promptIds: [...request.promptIds, ...before],",
    "promptIds: request.promptIds,",
  ],
  [
    "an interrupted turn's versions are mixed up",
    "engine/join-generations.ts",
    "[...pieces, ...second.pieces]",
    "[...second.pieces, ...pieces]",
  ],
  [
    "a failure is scored",
    "episode/play-episode.ts",
    'return { outcome: "failed", stopReason: "failure", failure',
    'return { outcome: "failed", stopReason: "failure", reward: 0, failure',
  ],
  [
    "attempts that an earlier process finished are played again",
    "run/group-book.ts",
    "if (done.has(sampleIndex)) continue;",
    "void done;",
  ],
  [
    "replies are not checked",
    "episode/sample-turn.ts",
    "checkGeneration(reply, request).outputIds.length",
    "reply.outputIds.length",
  ],
  [
    "a group that was taken is handed out again when an attempt of it is played again",
    "run/group-outlet.ts",
    "if (this.takenBefore.has(whole.groupIndex)) {",
    "if (this.takenBefore.has(-1)) {",
  ],
  [
    "that a group was taken is not noted",
    "run/group-outlet.ts",
    "await this.#noteTaken(group);",
    "",
  ],
  [
    "a group that nobody took is not handed out by the next start",
    "run/start-run.ts",
    "!taken.has(groupIndex) && !leftOut.has(groupIndex);",
    "taken.has(-1 - groupIndex);",
  ],
  [
    "what a branch shares is trained again in its row",
    "episode/play-episode.ts",
    "play.recorder.beginFork();",
    "void play.recorder;",
  ],
  [
    "a branch has a user of its own",
    "run/branches.ts",
    "const place = { seed: fork.seed, samplingSeed: seed,",
    "const place = { seed, samplingSeed: seed,",
  ],
  [
    "branches are sampled with the seed of what they part from",
    "run/branches.ts",
    "const place = { seed: fork.seed, samplingSeed: seed,",
    "const place = { seed: fork.seed, samplingSeed: fork.seed,",
  ],
  [
    "branches part from a first attempt that nothing scored",
    "run/branches.ts",
    "if (trunk?.episode.reward === undefined) return job;",
    "if (trunk === undefined) return job;",
  ],
  [
    "branches of a first attempt that an earlier start played begin anew",
    "run/branches.ts",
    "const trunk = group.trunk ?? (await this.#readTrunk(group));",
    "const { trunk } = group;",
  ],
  [
    "branches do not wait for their first attempt",
    "run/group-book.ts",
    "const waitForFirst = this.isBranching && jobs[0]?.assignment.sampleIndex === 0;",
    "const waitForFirst = false;",
  ],
  [
    "a branch that began anew is given up when the first attempt is played again",
    "run/branches.ts",
    "if (fork === undefined || (await this.#hasBegunAnew(job))) return job;",
    "if (fork === undefined) return job;",
  ],
  [
    "what a fork shares is not in its own recording",
    "run/play-attempts.ts",
    "if (past === undefined && fork !== undefined) written?.add(fork.inputs);",
    "void written;",
  ],
  [
    "what an agent shows right before a branch is not looked at",
    "episode/play-episode.ts",
    "if (turnIndex > 0) play.player.requireNextPrompt(play.recorder.promptHash);",
    "",
  ],
  [
    "what an agent throws in what is shared is told as a fault of the recording",
    "episode/input-player.ts",
    'if (next === undefined || (next.type === "answer" && next.what === what)) return;',
    "if (next !== null) return;",
  ],
  [
    "a group is whole with one scored attempt too few",
    "run/group-book.ts",
    "reward !== undefined).length >= this.#size;",
    "reward !== undefined).length >= Math.max(this.#size - 1, 1);",
  ],
  ["a task that comes once is not noted", "run/job-desk.ts", "if (isNoted) {", "if (!isNoted) {"],
  [
    "groups are handed out that a filter leaves out",
    "run/group-outlet.ts",
    "const verdict = grouping.keep === undefined || askFilter(grouping.keep, aged);",
    "const verdict = grouping.keep === undefined || askFilter(grouping.keep, aged) || true;",
  ],
  [
    "the gate stays closed after new weights",
    "run/start-run.ts",
    "if (!this.#isPaused && this.#updateCount === 0) this.#openGates();",
    "void this.#isPaused;",
  ],
  ["a folder serves a second start", "run/run-folder.ts", "this.#isStarted = true;", ""],
  [
    "an episode is told of before it is on the disk",
    "run/start-run.ts",
    "const episodeHash = await folder?.writeEpisode(episode);",
    "onEpisode?.(episode); const episodeHash = await folder?.writeEpisode(episode);",
  ],
  [
    "the lock stays when a folder is given back",
    "run/run-folder.ts",
    "await using _lock = this.#lock;",
    "",
  ],
];

/** The same, where workers play the attempts: counted in runs that are handed out. */
const queueBugs = [
  [
    "a job that the store lost is not put there again",
    "queue/hand-out/job-book.ts",
    "if (name === null || name === undefined) this.#add(handed);",
    "if (name === null || name === undefined) continue;",
  ],
  [
    "an answer of which no news came is not looked for",
    "queue/hand-out/job-book.ts",
    "else if (finishedOn !== null) this.take(handed.id, parse(returned));",
    "else if (finishedOn !== null) continue;",
  ],
  [
    "an answer that goes on from other inputs than those of now is taken",
    "queue/job/attempt-result.ts",
    "if (read.data.base !== baseOf(job)) {",
    "if (read.data.base === job) {",
  ],
  [
    "an attempt that an earlier start had interrupted counts as this one's",
    "queue/hand-out/judge-answer.ts",
    'if (result.episode.outcome === "aborted" && !handed.isInterrupted) {',
    'if (result.episode.outcome === "none") {',
  ],
  [
    "updates do not wait for workers",
    "queue/hand-out/remote-policy.ts",
    "await this.#settled(this.#state.revision);",
    "",
  ],
  [
    "workers do not look up whether the policy may be asked",
    "queue/worker/run-lane.ts",
    'if (state.gate === "open") {',
    'if (state.gate !== "none") {',
  ],
  [
    "a worker that stood still hands on what it sampled meanwhile",
    "queue/worker/watch-engine-lease.ts",
    "      watch();\n",
    "      void watch;\n",
  ],
  [
    "what an answer says of its inputs is not recorded",
    "queue/hand-out/judge-answer.ts",
    "for (const part of parts) told.onInputs?.(part);",
    "void parts;",
  ],
  [
    "a worker does not give back what it plays when it leaves",
    "queue/worker/queue-worker.ts",
    "    for (const lane of this.#lanes.values()) lane.giveBack();\n    await within",
    "    await within",
  ],
  [
    "locks of what is played are not renewed",
    "queue/worker/queue-worker.ts",
    "      await lane.renew();\n",
    "",
  ],
  [
    "a refusal of the store ends its worker",
    "queue/worker/run-lane.ts",
    "if (isRefusal(error)) return undefined;",
    "",
  ],
];

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const at = process.argv.indexOf("--seeds");
const seeds = at < 0 ? "400" : process.argv[at + 1];
const onlyAt = process.argv.indexOf("--only");
const only = onlyAt < 0 ? "" : process.argv[onlyAt + 1];
const copy = await mkdtemp(path.join(tmpdir(), "turnwright-planted-"));
let isMissed = false;
try {
  for (const name of [
    "src",
    "test",
    "environments",
    "package.json",
    "tsconfig.json",
    "vitest.config.ts",
  ]) {
    await cp(path.join(root, name), path.join(copy, name), { recursive: true });
  }
  await symlink(path.join(root, "node_modules"), path.join(copy, "node_modules"));
  for (const bug of [...bugs, ...queueBugs]) {
    const [what, name, from, to] = bug;
    if (!what.includes(only)) continue;
    const env = queueBugs.includes(bug) ? { SIMULATION_QUEUE: "1" } : {};
    const file = path.join(copy, "src", name);
    const source = await readFile(file, "utf8");
    if (!source.includes(from)) throw new Error(`Cannot plant "${what}": ${name} reads otherwise`);
    await writeFile(file, source.replace(from, to));
    const seed = await firstFailure(env);
    await writeFile(file, source);
    isMissed ||= seed === undefined;
    console.log(
      seed === undefined
        ? `MISSED within ${seeds} seeds: ${what}`
        : `found with ${seed + 1} seeds: ${what}`,
    );
  }
} finally {
  await rm(copy, { recursive: true });
}
process.exitCode = isMissed ? 1 : 0;

/** The first seed that fails; nothing where none does. `env` says what else is played. */
function firstFailure(env) {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ["node_modules/vitest/vitest.mjs", "run", "test/simulation"],
      { cwd: copy, env: { ...process.env, ...env, SIMULATION_SEEDS: seeds }, maxBuffer: 2 ** 26 },
      (_error, stdout, stderr) => {
        const match = /seed (\d+); play it again/.exec(stdout + stderr);
        resolve(match === null ? undefined : Number(match[1]));
      },
    );
  });
}
