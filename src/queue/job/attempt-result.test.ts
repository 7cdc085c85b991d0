import { describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { testEpisode } from "../../run/folder/run-folder.fixture.ts";
import type { AttemptJob } from "./attempt-job.ts";
import { attemptJobSchema, requireNames, jobIdOf } from "./attempt-job.ts";
import { answerSchema, readResult } from "./attempt-result.ts";

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
const sound = {
  result: 1,
  base: "",
  deliveries: 1,
  from: "first",
  recordedTurns: 0,
  episode,
  lines: [],
  troubles: [],
};

/** The error for a result with one replaced member. */
function faultWith(change: object): string | undefined {
  const read = readResult(JSON.stringify({ ...sound, ...change }), job);
  return "fault" in read ? read.fault : undefined;
}

describe("a worker's result", () => {
  test("is accepted unchanged if it is sound", () => {
    expect(readResult(JSON.stringify(sound), job)).toEqual({
      result: JSON.parse(JSON.stringify(sound)) as object,
    });
  });

  test.each([
    ["another rollout", { rolloutId: "x" }, "its rolloutId is x, the job's t#3"],
    ["another attempt", { attempt: 2 }, "its attempt is 2, the job's 1"],
    ["another seed", { seed: 99 }, `its seed is 99, the job's ${seed}`],
    ["no messages", { messages: undefined }, "episode.messages: "],
    ["an outcome that there is not", { outcome: "won" }, "episode.outcome: "],
    ["a reward that is a text", { reward: "1" }, "episode.reward: "],
  ])("is refused with %s", (_, change, expected) => {
    expect(faultWith({ episode: { ...episode, ...change } })).toContain(expected);
  });

  test.each([
    ["logprobs of another length", { logprobs: [0] }, "segments[0].logprobs has 1 entries, not 5"],
    ["ids that are none", { tokenIds: [1, 2, 3, 4, -5] }, "segments[0].tokenIds"],
    ["a mask of other numbers", { lossMask: [0, 0, 0, 1, 2] }, "segments[0].lossMask"],
    ["a logprob that JSON lost", { logprobs: [0, 0, 0, null, 0] }, "segments[0].logprobs"],
  ])("is refused with %s", (_, change, expected) => {
    const [segment] = episode.segments;
    expect(faultWith({ episode: { ...episode, segments: [{ ...segment, ...change }] } })).toBe(
      expected,
    );
  });

  test("is refused if it is not JSON or has unknown fields", () => {
    expect(readResult("{", job)).toEqual({
      fault: expect.stringMatching(/^it is no JSON/) as string,
    });
    expect(faultWith({ more: 1 })).toContain("Unrecognized key");
    expect(faultWith({ base: "0".repeat(64) })).toMatch(/^it goes on from other inputs than /);
    expect(
      answerSchema.safeParse({ answer: 1, type: "played", handOut: "h", worker: "w" }).success,
    ).toBe(false);
    const large = { by: "reply", text: "x".repeat(100_001) };
    const answer = { answer: 1, type: "played", handOut: "h", worker: "w", result: large };
    expect(answerSchema.safeParse(answer).success).toBe(false);
  });
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
