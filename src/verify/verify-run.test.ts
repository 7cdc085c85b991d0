import fc from "fast-check";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeSoundRun } from "./sound-run.fixture.ts";
import { verifyRun } from "./verify-run.ts";

// A damaged row has any shape at all.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = Record<string, any>;

/** A run's files in memory; the mutated contents are written. */
interface RunFiles {
  run: Json;
  summary: Json | undefined;
  episodes: Json[];
  samples: Json[];
  slime: Json[] | undefined;
  events: Json[] | undefined;
}

let scratch = "";
let sound = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-audit-"));
  sound = path.join(scratch, "sound");
  await writeSoundRun(sound);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const lists = {
  episodes: "episodes.jsonl",
  samples: "samples.jsonl",
  slime: "samples.slime.jsonl",
  events: "events.jsonl",
} as const;

async function readRun(dir: string): Promise<RunFiles> {
  const read = (name: string) => readFile(path.join(dir, name), "utf8");
  const rows = async (name: string) =>
    (await read(name))
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Json);
  return {
    run: JSON.parse(await read("run.json")) as Json,
    summary: JSON.parse(await read("summary.json")) as Json,
    episodes: await rows(lists.episodes),
    samples: await rows(lists.samples),
    slime: await rows(lists.slime),
    events: await rows(lists.events),
  };
}

let copyCount = 0;

/** Writes a damaged copy of the sound run. */
async function damaged(mutate: (files: RunFiles) => void): Promise<string> {
  const files = await readRun(sound);
  mutate(files);
  const dir = path.join(scratch, `damaged-${copyCount++}`);
  await cp(sound, dir, { recursive: true });
  for (const [name, file] of Object.entries(lists)) {
    const rows = files[name as keyof typeof lists];
    const target = path.join(dir, file);
    if (rows === undefined) await rm(target);
    else await writeFile(target, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  }
  for (const [name, value] of Object.entries({ run: files.run, summary: files.summary })) {
    const target = path.join(dir, `${name}.json`);
    if (value === undefined) await rm(target);
    else await writeFile(target, JSON.stringify(value));
  }
  return dir;
}

async function rulesOf(dir: string): Promise<string[]> {
  const { violations } = await verifyRun(dir);
  return [...new Set(violations.map(({ file, rule }) => `${file} ${rule}`))];
}

const isSampled = (row: Json): number[] =>
  (row["lossMask"] as number[]).flatMap((bit, index) => (bit === 1 ? [index] : []));
const failedRow = (rows: Json[]): Json => rows.find((row) => row["outcome"] === "failed")!;
const cutRow = (rows: Json[]): Json => rows.find((row) => row["stopReason"] === "max-turns")!;
const splitRows = (rows: Json[]): Json[] =>
  rows.filter((row) => row["rolloutId"] === "shop/test/2#0");
const drop = (row: Json): Json => (row["turns"] as Json[]).find((turn) => "droppedStopId" in turn)!;
const forget = (events: Json[], { rolloutId }: Json): Json[] =>
  events.splice(
    events.findIndex((event) => event["rolloutId"] === rolloutId),
    1,
  );
const droppedRow = (rows: Json[]): Json =>
  rows.find((row) => row["rolloutId"] === "shop/test/3#1")!;

/** A mutation of a sound run, and the file and rule of its finding. */
const mutations: readonly (readonly [string, (files: RunFiles) => void, string])[] = [
  // Ids
  [
    "a sampled id",
    ({ samples }) => (samples[0]!.tokenIds[5] = 150),
    "samples.jsonl trained-is-sampled",
  ],
  [
    "a prompt id",
    ({ samples }) => (samples[0]!.tokenIds[0] = 9),
    "samples.jsonl request-is-ledger",
  ],
  [
    "an environment id",
    ({ samples }) => (samples[0]!.tokenIds[8] = 62),
    "samples.jsonl request-is-ledger",
  ],
  [
    "an id after the last turn",
    ({ samples }) => cutRow(samples).tokenIds.splice(-1, 1, 62),
    "samples.jsonl row-changed",
  ],
  [
    "an id above 2^31",
    ({ samples }) => (samples[0]!.tokenIds[5] = 2 ** 31 + 7),
    "samples.jsonl token-ids",
  ],
  ["a negative id", ({ samples }) => (samples[0]!.tokenIds[5] = -1), "samples.jsonl token-ids"],
  [
    "an id that is text",
    ({ samples }) => (samples[0]!.tokenIds[5] = "102"),
    "samples.jsonl token-ids",
  ],
  [
    "an id outside the vocabulary",
    ({ samples }) => (samples[0]!.tokenIds[5] = 200),
    "samples.jsonl vocabulary",
  ],
  [
    "two ids that change places",
    ({ samples }) => samples[0]!.tokenIds.splice(4, 2, 101, 100),
    "samples.jsonl trained-is-sampled",
  ],
  [
    "a row cut short",
    ({ samples }) => {
      for (const field of ["tokenIds", "lossMask", "logprobs", "policyVersions"])
        cutRow(samples)[field].pop();
    },
    "episodes.jsonl episode-samples",
  ],
  [
    "changed ids without hashes",
    ({ samples }) => {
      samples[0]!.tokenIds[5] = 150;
      for (const turn of samples[0]!.turns) {
        delete turn.promptHash;
        delete turn.outputHash;
      }
    },
    "samples.jsonl hashes",
  ],
  [
    "a missing promptHash",
    ({ samples }) => delete samples[0]!.turns[1].promptHash,
    "samples.jsonl hashes",
  ],
  [
    "a missing outputHash",
    ({ samples }) => delete samples[0]!.turns[1].outputHash,
    "samples.jsonl hashes",
  ],
  [
    "a hash that is none",
    ({ samples }) => (samples[0]!.turns[0].outputHash = "?"),
    "samples.jsonl hashes",
  ],
  // Mask, logprobs, versions
  ["a trained prompt id", ({ samples }) => (samples[0]!.lossMask[0] = 1), "samples.jsonl mask"],
  [
    "a trained environment id",
    ({ samples }) => (samples[0]!.lossMask[8] = 1),
    "samples.jsonl mask",
  ],
  ["an untrained sampled id", ({ samples }) => (samples[0]!.lossMask[5] = 0), "samples.jsonl mask"],
  [
    "a mask of truth values",
    ({ samples }) => (samples[0]!.lossMask = samples[0]!.lossMask.map(Boolean)),
    "samples.jsonl mask",
  ],
  ["a mask that is too short", ({ samples }) => samples[0]!.lossMask.pop(), "samples.jsonl length"],
  [
    "a changed logprob",
    ({ samples }) => (samples[0]!.logprobs[5] = -0.75),
    "samples.jsonl row-changed",
  ],
  [
    "a positive logprob",
    ({ samples }) => (samples[0]!.logprobs[5] = 0.5),
    "samples.jsonl logprobs",
  ],
  [
    "a logprob a little too far above 0",
    ({ samples }) => (samples[0]!.logprobs[5] = 2e-6),
    "samples.jsonl logprobs",
  ],
  [
    "a logprob of minus infinity's stand-in",
    ({ samples }) => (samples[0]!.logprobs[5] = -1e30),
    "samples.jsonl logprobs",
  ],
  [
    "a logprob of null",
    ({ samples }) => (samples[0]!.logprobs[5] = null),
    "samples.jsonl logprobs",
  ],
  [
    "logprobs that are all zero",
    ({ samples }) => samples[0]!.logprobs.fill(0),
    "samples.jsonl logprobs",
  ],
  [
    "a logprob of an id that was not sampled",
    ({ samples }) => (samples[0]!.logprobs[0] = -0.1),
    "samples.jsonl logprobs",
  ],
  [
    "shifted logprobs",
    ({ samples }) => {
      samples[0]!.logprobs.unshift(0);
      samples[0]!.logprobs.pop();
    },
    "samples.jsonl logprobs",
  ],
  ["no logprobs", ({ samples }) => delete samples[0]!.logprobs, "samples.jsonl shape"],
  [
    "a missing version",
    ({ samples }) => (samples[0]!.policyVersions[5] = ""),
    "samples.jsonl policy-versions",
  ],
  [
    "a row without versions",
    ({ samples }) => samples[0]!.policyVersions.fill(""),
    "samples.jsonl policy-versions",
  ],
  [
    "no versions anywhere",
    ({ samples }) => {
      for (const row of samples) row["policyVersions"].fill("");
    },
    "samples.jsonl policy-versions",
  ],
  [
    "another version",
    ({ samples }) => {
      for (const index of isSampled(samples[0]!)) samples[0]!.policyVersions[index] = "8";
    },
    "samples.jsonl row-changed",
  ],
  [
    "a version of an id that was not sampled",
    ({ samples }) => (samples[0]!.policyVersions[0] = "7"),
    "samples.jsonl policy-versions",
  ],
  // Turns
  [
    "a prompt that ends elsewhere",
    ({ samples }) => (samples[0]!.promptLength = 3),
    "samples.jsonl turns",
  ],
  [
    "a prompt of nothing",
    ({ samples }) => (samples[0]!.promptLength = 0),
    "samples.jsonl prompt-length",
  ],
  [
    "a wrong turnIndex",
    ({ samples }) => (samples[0]!.turns[1].turnIndex = 2),
    "samples.jsonl turn-index",
  ],
  [
    "a missing turnIndex",
    ({ samples }) => delete samples[0]!.turns[0].turnIndex,
    "samples.jsonl turn-index",
  ],
  [
    "turns that change places",
    ({ samples }) => (samples[0]!.turns = samples[0]!.turns.toReversed()),
    "samples.jsonl turns",
  ],
  [
    "a turn that is taken away",
    ({ samples }) => samples[0]!.turns.pop(),
    "episodes.jsonl episode-samples",
  ],
  [
    "all turns taken away, with their mask",
    ({ samples }) => {
      samples[0]!.turns = [];
      for (const field of ["lossMask", "logprobs"]) samples[0]![field].fill(0);
      samples[0]!.policyVersions.fill("");
    },
    "samples.jsonl no-turns",
  ],
  [
    "a turn that ends later",
    ({ samples }) => (samples[0]!.turns[0].end += 1),
    "samples.jsonl trained-is-sampled",
  ],
  [
    "a turn without an end",
    ({ samples }) => delete samples[0]!.turns[0].end,
    "samples.jsonl shape",
  ],
  [
    "an unknown finish",
    ({ samples }) => (samples[0]!.turns[0].finish = "abort"),
    "samples.jsonl finish",
  ],
  [
    "another finish than the episode's",
    ({ samples }) => (samples[0]!.turns[0].finish = "length"),
    "samples.jsonl episode-turns",
  ],
  [
    "another dropped stop",
    ({ samples }) => (drop(droppedRow(samples)).droppedStopId = 98),
    "samples.jsonl trained-is-sampled",
  ],
  [
    "a dropped stop without its logprob",
    ({ samples }) => delete drop(droppedRow(samples)).droppedStopLogprob,
    "samples.jsonl dropped-stop",
  ],
  [
    "a dropped stop with a logprob above 0",
    ({ samples }) => (drop(droppedRow(samples)).droppedStopLogprob = 0.1),
    "samples.jsonl dropped-stop",
  ],
  // Outcome and reward
  ["a changed reward", ({ samples }) => (samples[0]!.reward = 0.5), "samples.jsonl episode-reward"],
  ["a reward in words", ({ samples }) => (samples[0]!.reward = "1"), "samples.jsonl reward"],
  [
    "a reward that no trainer can hold",
    ({ samples }) => (samples[0]!.reward = 1e39),
    "samples.jsonl reward",
  ],
  ["a reward of null", ({ samples }) => (samples[0]!.reward = null), "samples.jsonl reward"],
  [
    "a completed row without a reward",
    ({ samples }) => delete samples[0]!.reward,
    "samples.jsonl reward",
  ],
  [
    "a failed row with a reward",
    ({ samples }) => (failedRow(samples).reward = 0),
    "samples.jsonl reward",
  ],
  [
    "a failed row without its failure",
    ({ samples }) => delete failedRow(samples).failure,
    "samples.jsonl failure",
  ],
  [
    "a failure of an unknown party",
    ({ samples }) => (failedRow(samples).failure.party = "weather"),
    "samples.jsonl failure",
  ],
  [
    "a failure whose code is another party's",
    ({ samples }) => (failedRow(samples).failure.code = "user/timeout"),
    "samples.jsonl failure",
  ],
  [
    "a failure that is made to look completed",
    ({ samples }) => {
      const row = failedRow(samples);
      row["outcome"] = "completed";
      row["stopReason"] = "finished";
      row["reward"] = 1;
      delete row["failure"];
    },
    "samples.jsonl episode-outcome",
  ],
  [
    "an unknown outcome",
    ({ samples }) => (samples[0]!.outcome = "abandoned"),
    "samples.jsonl outcome",
  ],
  [
    "an unknown stopReason",
    ({ samples }) => (samples[0]!.stopReason = "bored"),
    "samples.jsonl stop-reason",
  ],
  [
    "a stopReason of another outcome",
    ({ samples }) => (samples[0]!.stopReason = "max-turns"),
    "samples.jsonl stop-reason",
  ],
  [
    "another stopReason of the same outcome",
    ({ samples }) => (samples[0]!.stopReason = "finished"),
    "samples.jsonl episode-stopReason",
  ],
  // Identity and metadata
  [
    "another group",
    ({ samples }) => (samples[0]!.groupId = "shop/test/1"),
    "samples.jsonl episode-groupId",
  ],
  [
    "another task",
    ({ samples }) => (samples[0]!.taskId = "shop/test/1"),
    "samples.jsonl episode-taskId",
  ],
  ["no task", ({ samples }) => delete samples[0]!.taskId, "samples.jsonl shape"],
  ["another format", ({ samples }) => (samples[0]!.format = 2), "samples.jsonl format"],
  [
    "other metadata",
    ({ samples }) => (samples[0]!.metadata.turnCount = 9),
    "samples.jsonl metadata",
  ],
  [
    "metadata that is more",
    ({ samples }) => (samples[0]!.metadata.advantage = 3),
    "samples.jsonl metadata",
  ],
  ["a field that is more", ({ samples }) => (samples[0]!.weight = 3), "samples.jsonl row-changed"],
  // Rows
  ["a row that is taken away", ({ samples }) => samples.shift(), "episodes.jsonl episode-samples"],
  [
    "the first segment taken away",
    ({ samples }) => samples.splice(samples.indexOf(splitRows(samples)[0]!), 1),
    "samples.jsonl segments",
  ],
  [
    "the last segment taken away",
    ({ samples }) => samples.splice(samples.indexOf(splitRows(samples)[1]!), 1),
    "episodes.jsonl episode-samples",
  ],
  [
    "a segment with another number",
    ({ samples }) => (splitRows(samples)[1]!.segment = 2),
    "samples.jsonl segments",
  ],
  ["a row twice", ({ samples }) => samples.unshift(samples[0]!), "samples.jsonl trained-once"],
  [
    "a row under another rollout's name",
    ({ samples }) => (samples[0]!.rolloutId = "shop/test/0#1"),
    "samples.jsonl segments",
  ],
  [
    "a row of no episode",
    ({ samples }) => samples.push({ ...samples[0], rolloutId: "shop/test/9#0" }),
    "samples.jsonl no-episode",
  ],
  [
    "a row that is not an object",
    ({ samples }) => samples.push([] as never),
    "samples.jsonl shape",
  ],
  // Episodes
  ["an episode that is taken away", ({ episodes }) => episodes.pop(), "samples.jsonl no-episode"],
  [
    "an episode taken away with everything of it",
    ({ episodes, samples, events }) => {
      const [gone] = episodes.splice(0, 1);
      for (const rows of [samples, events!])
        rows.splice(
          0,
          rows.length,
          ...rows.filter((row) => row["rolloutId"] !== gone!["rolloutId"]),
        );
    },
    "episodes.jsonl missing",
  ],
  ["an episode twice", ({ episodes }) => episodes.push(episodes[0]!), "episodes.jsonl episodes"],
  ["an episode's reward", ({ episodes }) => (episodes[0]!.reward = 1), "events.jsonl events"],
  [
    "the reward of an episode and its row",
    ({ episodes, samples }) => {
      cutRow(episodes).reward = 1;
      cutRow(samples).reward = 1;
    },
    "samples.jsonl row-changed",
  ],
  [
    "an episode's text",
    ({ episodes }) => (episodes[0]!.turns[0].text = "[buy a lamp]"),
    "events.jsonl events",
  ],
  [
    "an episode's text cut short",
    ({ episodes }) => (episodes[0]!.turns[0].text = "[sell"),
    "episodes.jsonl attempts",
  ],
  [
    "an episode's message",
    ({ episodes }) => (episodes[0]!.messages[1].content = "I want two."),
    "events.jsonl events",
  ],
  ...[5, {}, "slow", null, [null], [{}], [{ code: "user/timeout", message: "late" }]].map(
    (troubles): (typeof mutations)[number] => [
      `troubles that are none: ${JSON.stringify(troubles)}`,
      ({ episodes }) => (episodes[0]!["troubles"] = troubles),
      "episodes.jsonl shape",
    ],
  ),
  [
    "a place among the groups that is none",
    ({ episodes }) => (episodes[0]!["groupIndex"] = "first"),
    "episodes.jsonl shape",
  ],
  [
    "a cost that is none",
    ({ episodes }) => (episodes[0]!["userUsage"].costUsd = "1.5"),
    "episodes.jsonl shape",
  ],
  [
    "an episode's attempts",
    ({ episodes }) => (episodes[0]!.turns[0].attempts[0].tokenSpan = [0, 5]),
    "episodes.jsonl attempts",
  ],
  [
    "an episode without a turn",
    ({ episodes }) => episodes[0]!.turns.pop(),
    "episodes.jsonl counts",
  ],
  [
    "turns of an episode that change places",
    ({ episodes }) => (episodes[0]!.turns = episodes[0]!.turns.toReversed()),
    "episodes.jsonl turn-index",
  ],
  [
    "an episode's number of turns",
    ({ episodes }) => (episodes[0]!.counts.turnCount += 1),
    "episodes.jsonl counts",
  ],
  [
    "an episode's number of ids",
    ({ episodes }) => (episodes[0]!.counts.tokenCount += 1),
    "episodes.jsonl episode-samples",
  ],
  [
    "an episode's number of sampled ids",
    ({ episodes }) => (episodes[0]!.counts.sampledTokenCount += 1),
    "episodes.jsonl counts",
  ],
  [
    "a turn's number of sampled ids",
    ({ episodes }) => (episodes[0]!.turns[0].sampledTokenCount = 5),
    "samples.jsonl episode-turns",
  ],
  [
    "a turn's number of prompt ids",
    ({ episodes }) => (episodes[0]!.turns[0].promptTokenCount = 5),
    "samples.jsonl episode-turns",
  ],
  [
    "an episode without its hashes",
    ({ episodes }) => delete episodes[0]!.sampleHashes,
    "episodes.jsonl hashes",
  ],
  [
    "an episode with fewer hashes",
    ({ episodes }) => episodes[0]!.sampleHashes.pop(),
    "episodes.jsonl episode-samples",
  ],
  ["an episode of another seed", ({ episodes }) => (episodes[0]!.seed += 1), "episodes.jsonl plan"],
  [
    "an episode of another environment",
    ({ episodes }) => (episodes[0]!.environment = "shed"),
    "episodes.jsonl plan",
  ],
  [
    "an episode of a task that is not planned",
    ({ episodes }) => (episodes[0]!.taskIndex = 7),
    "episodes.jsonl plan",
  ],
  [
    "an episode under another name",
    ({ episodes }) => (episodes[0]!.sampleIndex = 0),
    "episodes.jsonl plan",
  ],
  [
    "an episode that is not an object",
    ({ episodes }) => episodes.push(7 as never),
    "episodes.jsonl json",
  ],
  // The run
  ["a run without its plan", ({ run }) => delete run["found"].plan, "run.json run"],
  ["a run without its vocabulary", ({ run }) => delete run["found"].vocabularySize, "run.json run"],
  ["a run of another format", ({ run }) => (run["format"] = 2), "run.json run"],
  [
    "a plan of more tasks",
    ({ run }) => run["found"].plan.taskIndexes.push(4),
    "episodes.jsonl missing",
  ],
  [
    "a plan of fewer attempts",
    ({ run }) => (run["found"].plan.sampleCount = 1),
    "episodes.jsonl plan",
  ],
  [
    "a run that does not ask for slime's rows",
    ({ run }) => delete run["configuration"].format,
    "samples.slime.jsonl slime",
  ],
  ["another temperature", ({ run }) => (run["configuration"].temperature = 0.5), "run.json run"],
  ["another engine that was found", ({ run }) => (run["found"].engine.kind = "x"), "run.json run"],
  ["another model that was found", ({ run }) => (run["found"].engine.model = "x"), "run.json run"],
  [
    "another vocabulary that was found",
    ({ run }) => (run["found"].vocabularySize = 201),
    "run.json run",
  ],
  [
    "another chat template that was found",
    ({ run }) => (run["found"].template.templateHash = "c2"),
    "run.json run",
  ],
  [
    "another setting that was found",
    ({ run }) => (run["found"].settings.tasks = "1"),
    "run.json run",
  ],
  ["another tokenizer", ({ run }) => (run["identity"].tokenizer = "t2"), "run.json run"],
  ["a run without its identity", ({ run }) => delete run["identity"], "run.json run"],
  ["another mean reward", ({ summary }) => (summary!["rewardMean"] = 0.9), "summary.json summary"],
  [
    "another account of what has no score",
    ({ summary }) => (summary!["unscored"] = {}),
    "summary.json summary",
  ],
  ["another bill", ({ summary }) => (summary!["userUsage"].callCount += 1), "summary.json summary"],
  [
    "another number of episodes",
    ({ summary }) => (summary!["planned"] = 9),
    "summary.json summary",
  ],
  [
    "another account of slime's rows",
    ({ summary }) => (summary!["slime"].rows = 9),
    "summary.json summary",
  ],
  [
    "another end than the last event's",
    ({ summary, events }) => {
      events!.push({ type: "run-ended", atMs: 9, end: "finished" });
      summary!["end"] = "interrupted";
    },
    "summary.json summary",
  ],
  ["a summary of nothing", (files) => (files.summary = [] as never), "summary.json summary"],
  [
    "another bill in money",
    ({ summary }) => (summary!["userUsage"].costUsd = 99),
    "summary.json summary",
  ],
  [
    "counts of an agent's requests that no episode has",
    ({ summary }) => (summary!["gateway"] = { turnCount: 1 }),
    "summary.json summary",
  ],
  ["other outcomes", ({ summary }) => (summary!["outcomes"].failed = 0), "summary.json summary"],
  ["emptied events", (files) => (files.events = []), "events.jsonl events"],
  ["no events", (files) => (files.events = undefined), "events.jsonl events"],
  [
    "an event's reward",
    ({ events }) => (events!.find((event) => event["reward"] === 1)!["reward"] = 0),
    "events.jsonl events",
  ],
  [
    "an event that is taken away, and its episode changed in what no row repeats",
    ({ episodes, events }) => {
      episodes[0]!.messages[1].content = "I want two.";
      forget(events!, episodes[0]!);
    },
    "events.jsonl events",
  ],
  [
    "an event that is taken away, where only the last event says that the run is finished",
    (files) => {
      files.summary = undefined;
      forget(files.events!, files.episodes[0]!);
      files.events!.push({ type: "run-ended", atMs: 2, end: "finished" });
    },
    "events.jsonl events",
  ],
  [
    "an event that is said not to hold any more",
    ({ episodes, events }) =>
      events!.push({
        type: "episodes-dropped",
        atMs: 2,
        rolloutIds: [episodes[0]!["rolloutId"]],
      }),
    "events.jsonl events",
  ],
  [
    "a finished run without an event of its end",
    ({ events }) => events!.splice(-1),
    "events.jsonl events",
  ],
  [
    "events in another order",
    (files) => (files.events = files.events!.toReversed()),
    "events.jsonl events",
  ],
  // slime
  ["no slime file", (files) => (files.slime = undefined), "samples.slime.jsonl slime"],
  [
    "a slime row without a reward",
    ({ slime }) => (slime![0]!["reward"] = null),
    "samples.slime.jsonl slime",
  ],
  [
    "a slime row's logprob",
    ({ slime }) => (slime![0]!["rollout_log_probs"][0] = -3),
    "samples.slime.jsonl slime",
  ],
  [
    "a slime row's mask",
    ({ slime }) => (slime![0]!["loss_mask"][0] = 0),
    "samples.slime.jsonl slime",
  ],
  ["a slime row's id", ({ slime }) => (slime![0]!["tokens"][5] = 3), "samples.slime.jsonl slime"],
  [
    "a slime row's response",
    ({ slime }) => (slime![0]!["response"] = ""),
    "samples.slime.jsonl slime",
  ],
  [
    "a slime row of another group",
    ({ slime }) => (slime![0]!["group_index"] = 1),
    "samples.slime.jsonl slime",
  ],
  ["a slime row that is taken away", ({ slime }) => slime!.pop(), "samples.slime.jsonl slime"],
  ["a slime row twice", ({ slime }) => slime!.push(slime![0]!), "samples.slime.jsonl slime"],
  [
    "slime rows in another order",
    (files) => (files.slime = files.slime!.toReversed()),
    "samples.slime.jsonl slime",
  ],
  [
    "a slime row of an unscored episode",
    ({ slime }) => slime!.push({ ...slime![0], metadata: { rollout: "shop/test/3#0" } }),
    "samples.slime.jsonl slime",
  ],
  [
    "a slime row that is not an object",
    ({ slime }) => slime!.push("?" as never),
    "samples.slime.jsonl json",
  ],
];

describe("verifyRun()", () => {
  test("finds nothing in a sound run", async () => {
    expect(await verifyRun(sound)).toEqual({
      run: sound,
      samples: 9,
      episodes: 8,
      planned: 8,
      isFinished: true,
      slimeRows: 7,
      violations: [],
    });
  });

  test.each(mutations)("finds and names %s", async (_, mutate, expected) => {
    expect(await rulesOf(await damaged(mutate))).toContain(expected);
  });

  test("reports the missing parts of a running run, without a violation", async () => {
    const dir = await damaged((files) => {
      files.summary = undefined;
      const gone = ["shop/test/1#1", "shop/test/3#0"];
      for (const rows of [files.episodes, files.samples, files.events!]) {
        rows.splice(0, rows.length, ...rows.filter((row) => !gone.includes(row["rolloutId"])));
      }
      files.slime = undefined;
    });
    expect(await verifyRun(dir)).toEqual({
      run: dir,
      samples: 7,
      episodes: 6,
      planned: 8,
      isFinished: false,
      missingCount: 2,
      missing: ["attempt 1 of task 1", "attempt 0 of task 3"],
      violations: [],
    });
  });

  test("finds nothing if an episode was dropped, played again and not reported", async () => {
    const dir = await damaged((files) => {
      const { episodes, events } = files;
      const row = episodes.at(-1)!;
      const ended = { type: "run-ended", atMs: 2, end: "finished" };
      const again = { type: "episodes-dropped", atMs: 2, rolloutIds: [row["rolloutId"]] };
      row["durationMs"] += 1;
      events!.push(ended, again, { ...events![0]!, atMs: 3 });
      files.summary = undefined;
    });
    expect(await rulesOf(dir)).toEqual([]);
  });

  test("finds nothing if a call is closed by the stop, which is not in the text", async () => {
    const dir = path.join(scratch, "closed-by-stop");
    await writeSoundRun(dir, { attempt: { span: [0, 19], tokenSpan: [0, 4] } });
    expect(await rulesOf(dir)).toEqual([]);
    const beyond = path.join(scratch, "beyond-text");
    await writeSoundRun(beyond, { attempt: { span: [0, 19], tokenSpan: [0, 3] } });
    expect(await rulesOf(beyond)).toContain("episodes.jsonl attempts");
  });

  test("refuses a folder without a run", async () => {
    const dir = path.join(scratch, "empty");
    await mkdir(dir);
    await expect(verifyRun(dir)).rejects.toThrow(
      `Cannot read ${path.join(dir, "episodes.jsonl")}: no such file, expected a run's folder`,
    );
  });

  test("ends with findings for any JSON at any place of any file", async () => {
    // Neither an object without a text form nor a number.
    const hostile = { toString: 0, valueOf: 0 };
    const dir = path.join(scratch, "any-place");
    await cp(sound, dir, { recursive: true });
    for (const file of ["run.json", "summary.json", ...Object.values(lists)]) {
      const text = await readFile(path.join(sound, file), "utf8");
      const lines = file.endsWith(".jsonl") ? text.trimEnd().split("\n") : [text];
      const tried = new Set<string>();
      for (const [lineIndex, line] of lines.entries()) {
        for (const place of placesIn(JSON.parse(line))) {
          // One member of each list represents all of them.
          const name = place.map((key) => (typeof key === "number" ? "#" : key)).join(".");
          if (tried.has(name)) continue;
          tried.add(name);
          const row: unknown = JSON.parse(line);
          const holder = place.slice(0, -1).reduce((at: Json, key) => at[key] as Json, row as Json);
          holder[place.at(-1)!] = hostile;
          await writeFile(
            path.join(dir, file),
            lines.with(lineIndex, JSON.stringify(row)).join("\n") + "\n",
          );
          const { violations } = await verifyRun(dir);
          if (mustBeFound.includes(file)) expect(violations, `${file} ${name}`).not.toEqual([]);
        }
      }
      await writeFile(path.join(dir, file), text);
    }
  });

  test("ends with findings however deep a member of any file nests", async () => {
    const dir = path.join(scratch, "any-depth");
    await cp(sound, dir, { recursive: true });
    for (const depth of [490, 20_000]) {
      const deep = "[".repeat(depth) + "]".repeat(depth);
      for (const file of ["run.json", "summary.json", ...Object.values(lists)]) {
        const text = await readFile(path.join(sound, file), "utf8");
        const [line = ""] = file.endsWith(".jsonl") ? text.split("\n", 1) : [text];
        for (const name of Object.keys(JSON.parse(line) as object)) {
          const row = { ...(JSON.parse(line) as object), [name]: "@" };
          const damaged = text.replace(line, () => JSON.stringify(row).replace('"@"', deep));
          await writeFile(path.join(dir, file), damaged);
          const { violations } = await verifyRun(dir);
          if (mustBeFound.includes(file)) expect(violations, `${file} ${name}`).not.toEqual([]);
        }
        await writeFile(path.join(dir, file), text);
      }
    }
  });

  test("finds any single change to the recorded data", async () => {
    const names = ["episodes", "samples", "slime"] as const;
    const files = await readRun(sound);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...names),
        fc.nat(),
        fc.infiniteStream(fc.nat()),
        fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }),
        async (name, rowIndex, steps, value) => {
          const rows = files[name]!;
          const copy = structuredClone(rows);
          const change = replaceSomewhere(copy[rowIndex % rows.length]!, steps, value);
          fc.pre(JSON.stringify(copy) !== JSON.stringify(rows));
          const dir = await damaged((other) => (other[name] = copy));
          const { violations } = await verifyRun(dir);
          expect(violations.length, change).toBeGreaterThan(0);
          await rm(dir, { recursive: true });
        },
      ),
      { numRuns: 100 },
    );
  });
});

/** The recorded data of the episodes themselves. */
const mustBeFound: readonly string[] = [lists.episodes, lists.samples, lists.slime];

/** The ways to everything in a row, at any depth. */
function* placesIn(value: unknown): Generator<readonly (string | number)[]> {
  if (typeof value !== "object" || value === null) return;
  const keys = Array.isArray(value) ? value.keys() : Object.keys(value);
  for (const key of keys) {
    yield [key];
    for (const place of placesIn((value as Json)[key])) yield [key, ...place];
  }
}

/** Walks down from a row to some member and puts another value there, or none. */
function replaceSomewhere(row: Json, steps: Iterator<number>, value: unknown): string {
  let at: Json = row;
  const walked: string[] = [];
  for (;;) {
    const keys = Object.keys(at);
    const key = keys[(steps.next().value as number) % keys.length]!;
    walked.push(key);
    const child: unknown = at[key];
    const isLeaf = typeof child !== "object" || child === null || Object.keys(child).length === 0;
    if (isLeaf || (steps.next().value as number) % 4 === 0) {
      if (value === undefined) delete at[key];
      else at[key] = value;
      return `${walked.join(".")} = ${JSON.stringify(value)}`;
    }
    at = child;
  }
}
