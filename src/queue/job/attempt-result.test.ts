import { describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import type { Episode } from "../../episode/episode.ts";
import { episodeSamples } from "../../run/folder/episode-samples.ts";
import { testEpisode } from "../../run/folder/run-folder.fixture.ts";
import { packEpisode } from "../../run/packed/pack-episode.ts";
import { packedOf } from "../../run/packed/packed-episode.ts";
import { hashRow } from "../../trajectory/hash-row.ts";
import type { AttemptJob } from "./attempt-job.ts";
import { attemptJobSchema, requireNames, jobIdOf } from "./attempt-job.ts";
import { answerSchema, readResult, writeResult, type AttemptResult } from "./attempt-result.ts";

const episode = { ...testEpisode(3), format: 1, attempt: 1 } as const;
const { rolloutId, groupId, taskId, split, taskIndex, sampleIndex, seed } = episode;
const job: AttemptJob = {
  job: 1,
  run: "r",
  handOut: "h",
  terms: "t",
  policyRevision: 1,
  attempt: 1,
  start: 1,
  rolloutId,
  groupId,
  taskId,
  split,
  taskIndex,
  sampleIndex,
  seed,
};
/** The result of a worker that played the episode. */
async function resultOf(about: object = {}, played: Episode = episode): Promise<Buffer> {
  const recording = { bytes: Buffer.from("{}\n"), partCount: 1, lastHash: "h" };
  const pack = await packEpisode(played, { recording, troubles: [] });
  const first = {
    base: "",
    recordedAt: { part: 0, hash: "" },
    deliveries: 1,
    from: "first",
  } as const;
  return writeResult({ ...first, recordedTurns: 0, ...about }, pack);
}

function faultOf(bytes: Buffer): string | undefined {
  const read = readResult(bytes, job);
  return "fault" in read ? read.fault : undefined;
}

/** Changes the first line of a result. */
function withHead(bytes: Buffer, change: (head: { episode: { story: object } }) => object): Buffer {
  const end = bytes.indexOf("\n");
  const head = JSON.parse(bytes.toString("utf8", 0, end)) as { episode: { story: object } };
  return Buffer.concat([Buffer.from(JSON.stringify(change(head))), bytes.subarray(end)]);
}

describe("a worker's result", () => {
  test("is the episode, with the lines that a run appends", async () => {
    const read = readResult(await resultOf(), job) as { readonly result: AttemptResult };
    const { episode: found, ...about } = read.result;
    expect(about).toMatchObject({ deliveries: 1, from: "first", recordedTurns: 0 });
    const { samples, line, recording } = packedOf(found)!;
    expect(samples).toHaveLength(1);
    const rows = samples.map(({ blocks }) => JSON.parse(String(blocks[0])) as unknown);
    expect(rows).toEqual(episodeSamples(episode));
    expect(samples[0]!.hash).toBe(hashRow(rows[0]));
    expect(hashRow(JSON.parse(String(line.blocks[0])))).toBe(line.hash);
    expect(String(recording.bytes)).toBe("{}\n");
    expect(JSON.stringify(found)).toBe(JSON.stringify(episode));
    expect({ ...found }).toEqual(episode);
  });

  test("parses the long members when they are read", async () => {
    const bytes = await resultOf();
    const { result } = readResult(bytes, job) as { readonly result: AttemptResult };
    const { samples } = packedOf(result.episode)!;
    // Only the reader of the recording finds a line that cannot be parsed.
    samples[0]!.blocks[0]!.fill(0);
    expect(result.episode.reward).toBe(1);
    expect(result.episode.messages).toEqual(episode.messages);
    expect(() => result.episode.segments).toThrow(SyntaxError);
  });

  test.each([
    ["another rollout", { rolloutId: "x" }, "its rolloutId is x, the job's t#3"],
    ["another attempt", { attempt: 2 }, "its attempt is 2, the job's 1"],
    ["another seed", { seed: 99 }, `its seed is 99, the job's ${seed}`],
    ["no counts", { counts: undefined }, "episode.story.counts: "],
    ["an unknown outcome", { outcome: "won" }, "episode.story.outcome: "],
    ["a reward that is a text", { reward: "1" }, "episode.story.reward: "],
  ])("is refused with %s", async (_, change, expected) => {
    const changed = withHead(await resultOf(), (head) => ({
      ...head,
      episode: { ...head.episode, story: { ...head.episode.story, ...change } },
    }));
    expect(faultOf(changed)).toContain(expected);
  });

  test("is refused if its first line is damaged, or its lines have other sizes", async () => {
    const sound = await resultOf();
    expect(faultOf(Buffer.from("{"))).toBe("its first line is not JSON");
    expect(faultOf(sound.subarray(3))).toBe("its first line is not JSON");
    expect(faultOf(withHead(sound, (head) => ({ ...head, more: 1 })))).toContain(
      "Unrecognized key",
    );
    const longer = Buffer.concat([sound, Buffer.from("{}\n")]);
    expect(faultOf(longer)).toMatch(/^its lines have \d+ bytes, not \d+$/);
    const open = Buffer.from(sound);
    open[open.length - 1] = 32;
    expect(faultOf(open)).toBe("a line has no end");
  });

  test("is refused if it continues from other inputs", async () => {
    const fault = "it continues from other inputs than those that are recorded now";
    expect(faultOf(await resultOf({ base: "0".repeat(64) }))).toBe(fault);
    expect(faultOf(await resultOf({ recordedAt: { part: 1, hash: "h" } }))).toBe(fault);
  });
});

test("an answer has a result, and a short one", () => {
  expect(
    answerSchema.safeParse({ answer: 1, type: "played", handOut: "h", worker: "w" }).success,
  ).toBe(false);
  const large = { by: "reply", text: "x".repeat(100_001) };
  const answer = { answer: 1, type: "played", handOut: "h", worker: "w", result: large };
  expect(answerSchema.safeParse(answer).success).toBe(false);
});

test("a job names no file outside the shared place", () => {
  const past = (name: string) => ({ by: "shared", name, bytes: 1, sha256: "0".repeat(64) });
  expect(attemptJobSchema.safeParse({ ...job, past: past("past/r/a.1") }).success).toBe(true);
  for (const name of ["../a", "/etc/passwd", "a//b", "a/../b", "a\\b", ""]) {
    expect(attemptJobSchema.safeParse({ ...job, past: past(name) }).success, name).toBe(false);
  }
});

test("the same play of the same attempt has the same id, no matter which process hands it out", () => {
  const id = jobIdOf({ rolloutId: "shop/test/4#0", attempt: 1 });
  expect(id).toMatch(/^a[0-9a-f]{24}\.1$/);
  expect(jobIdOf({ rolloutId: "shop/test/4#0", attempt: 1 })).toBe(id);
  expect(jobIdOf({ rolloutId: "shop/test/4#0", attempt: 2 })).not.toBe(id);
  expect(jobIdOf({ scope: "b2", rolloutId: "shop/test/4#0", attempt: 1 })).not.toBe(id);
});

test("a job with names too long for workers is refused with the field, its length and the limit", () => {
  const rolloutId = `${"long/".repeat(300)}#0`;
  expect(() => requireNames(job)).not.toThrow();
  expect(() => requireNames({ ...job, rolloutId })).toThrow(
    `Cannot hand out ${"long/".repeat(20)}…: its rolloutId has 1502 characters, and names of 1 to 1000 travel ` +
      "to workers; give the environment's task, or the group, another id",
  );
  const forkedFrom = { rolloutId, turnIndex: 1 };
  expect(() => requireNames({ ...job, forkedFrom })).toThrow("its forkedFrom.rolloutId has 1502");
  for (const field of ["groupId", "taskId", "split"]) {
    expect(() => requireNames({ ...job, [field]: "x".repeat(1000) })).not.toThrow();
    expect(() => requireNames({ ...job, [field]: "x".repeat(1001) })).toThrow(UsageError);
    expect(() => requireNames({ ...job, [field]: "" })).toThrow(`its ${field} has 0 characters`);
  }
});
