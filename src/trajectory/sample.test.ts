import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Generation } from "../engine/engine.ts";
import { toSamples, type Sample } from "./sample.ts";
import { TrajectoryRecorder } from "./trajectory-recorder.ts";
import { verifyFile } from "./verify-file.ts";
import { type SampleFacts, verifySample } from "./verify-sample.ts";

function generation(outputIds: number[], logprobs: number[], policyVersion: string): Generation {
  return {
    outputIds,
    logprobs,
    finish: { type: "stop" },
    pieces: [{ requestId: "r", tokenCount: outputIds.length, policyVersion, finish: "stop" }],
    discarded: [],
  };
}

const identity = { rolloutId: "t#0", groupId: "t", taskId: "t" };

/** The worked example of the trainer contracts: two calls around one tool result. */
function workedExample(): Sample {
  const recorder = new TrajectoryRecorder();
  recorder.openSegment([1, 2, 3]);
  recorder.appendTurn(generation([10, 11], [-0.1, -0.2], "7"));
  recorder.appendDelta({ ids: [20, 21], text: "", closeSynthesised: false });
  recorder.appendTurn(generation([12, 99], [-0.3, -0.4], "8"));
  const end = { outcome: "completed", stopReason: "user-left", reward: 1 } as const;
  return toSamples(recorder.toSegments(), identity, end)[0]!;
}

describe("toSamples()", () => {
  test("returns no row for a rewritten history without a turn", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1, 2, 3]);
    recorder.appendTurn(generation([10, 11], [-0.1, -0.2], "7"));
    recorder.openSegment([1, 2, 11, 4]);
    expect(recorder.toSegments().map(({ turns }) => turns.length)).toEqual([1]);
    recorder.appendTurn(generation([12, 99], [-0.3, -0.4], "8"));
    expect(recorder.toSegments().map(({ turns }) => turns.length)).toEqual([1, 1]);
  });

  test("returns the row of the worked example", () => {
    const { turns, ...row } = workedExample();
    expect(row).toEqual({
      format: 1,
      rolloutId: "t#0",
      groupId: "t",
      taskId: "t",
      segment: 0,
      tokenIds: [1, 2, 3, 10, 11, 20, 21, 12, 99],
      promptLength: 3,
      lossMask: [0, 0, 0, 1, 1, 0, 0, 1, 1],
      logprobs: [0, 0, 0, -0.1, -0.2, 0, 0, -0.3, -0.4],
      policyVersions: ["", "", "", "7", "7", "", "", "8", "8"],
      reward: 1,
      outcome: "completed",
      stopReason: "user-left",
      metadata: {},
    });
    expect(turns).toMatchObject([
      { turnIndex: 0, start: 3, end: 5, finish: "stop" },
      { turnIndex: 1, start: 7, end: 9, finish: "stop" },
    ]);
  });

  test("leaves the reward out if the episode was not scored", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1]);
    const failure = { party: "engine", code: "engine/timeout", message: "m" } as const;
    const end = { outcome: "failed", stopReason: "failure", failure } as const;
    const [row] = toSamples(recorder.toSegments(), identity, end);
    expect(row).not.toHaveProperty("reward");
    expect(verifySample(row)).toEqual([]);
  });

  test("contains no turn without sampled ids", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1]);
    recorder.appendTurn({ ...generation([], [], "7"), finish: { type: "length" } });
    const end = { outcome: "truncated", stopReason: "deadline" } as const;
    const [row] = toSamples(recorder.toSegments(), identity, end);
    expect(verifySample(row)).toEqual([
      {
        rule: "turns",
        detail: expect.stringContaining("turns[0] has no id that the policy sampled"),
      },
    ]);
  });

  test("masks a close that was not sampled", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1]);
    recorder.appendTurn({ ...generation([10], [-0.5], "7"), finish: { type: "length" } });
    recorder.appendDelta({ ids: [99, 20], text: "", closeSynthesised: true });
    const [segment] = recorder.toSegments();
    expect(segment!.lossMask).toEqual([0, 1, 0, 0]);
    expect(segment!.spans.map(({ kind }) => kind)).toEqual([
      "prompt",
      "sampled",
      "synthesised-close",
      "environment",
    ]);
  });

  test("gives each token the policy version of its own piece", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1]);
    recorder.appendTurn({
      ...generation([10, 11, 12], [-1, -2, -3], ""),
      pieces: [
        { requestId: "a", tokenCount: 2, policyVersion: "7", finish: "abort" },
        { requestId: "b", tokenCount: 1, policyVersion: "8", finish: "stop" },
      ],
    });
    expect(recorder.toSegments()[0]!.policyVersions).toEqual(["", "7", "7", "8"]);
  });
});

describe("verifySample()", () => {
  test("finds nothing in a sound row", () => {
    expect(verifySample(JSON.parse(JSON.stringify(workedExample())))).toEqual([]);
  });

  test.each<[string, (row: Record<string, unknown>) => void, string]>([
    [
      "a changed sampled id",
      (row) => ((row["tokenIds"] as number[])[4] = 12),
      "trained-is-sampled",
    ],
    [
      "a changed environment id",
      (row) => ((row["tokenIds"] as number[])[5] = 22),
      "request-is-ledger",
    ],
    ["a changed prompt id", (row) => ((row["tokenIds"] as number[])[0] = 9), "request-is-ledger"],
    ["a trained prompt token", (row) => ((row["lossMask"] as number[])[2] = 1), "mask"],
    ["an untrained sampled token", (row) => ((row["lossMask"] as number[])[8] = 0), "mask"],
    ["a null logprob", (row) => ((row["logprobs"] as unknown[])[3] = null), "logprobs"],
    ["a positive logprob", (row) => ((row["logprobs"] as number[])[3] = 0.5), "logprobs"],
    ["a logprob without a mask", (row) => ((row["logprobs"] as number[])[5] = -0.1), "logprobs"],
    ["a missing logprob", (row) => (row["logprobs"] as number[]).pop(), "length"],
    [
      "a version without a mask",
      (row) => ((row["policyVersions"] as string[])[5] = "7"),
      "policy-versions",
    ],
    ["an id that is none", (row) => ((row["tokenIds"] as unknown[])[1] = -4), "token-ids"],
    ["a prompt that is too long", (row) => (row["promptLength"] = 40), "prompt-length"],
    ["a prompt that ends elsewhere", (row) => (row["promptLength"] = 2), "turns"],
    ["overlapping turns", (row) => ((row["turns"] as { start: number }[])[1]!.start = 4), "turns"],
    ["a reward of null", (row) => (row["reward"] = null), "reward"],
    ["an unknown outcome", (row) => (row["outcome"] = "abandoned"), "outcome"],
    ["a failed episode with a reward", (row) => (row["outcome"] = "failed"), "reward"],
    ["another format", (row) => (row["format"] = 2), "format"],
    ["no task", (row) => delete row["taskId"], "shape"],
  ])("finds %s", (_, harm, rule) => {
    const row = JSON.parse(JSON.stringify(workedExample())) as Record<string, unknown>;
    harm(row);
    expect(verifySample(row).map((violation) => violation.rule)).toContain(rule);
  });

  test("finds every missing hash", () => {
    const row = JSON.parse(JSON.stringify(workedExample())) as { turns: Record<string, unknown>[] };
    for (const turn of row.turns) delete turn["promptHash"];
    delete row.turns[1]!["outputHash"];
    expect(verifySample(row).map(({ rule, detail }) => `${rule}: ${detail}`)).toEqual([
      "hashes: turns[0].promptHash is undefined, expected 16 hexadecimal digits",
      "request-is-ledger: the ids before turns[0] are not the ids that the engine was sent",
      "hashes: turns[1].promptHash is undefined, expected 16 hexadecimal digits",
      "hashes: turns[1].outputHash is undefined, expected 16 hexadecimal digits",
      "request-is-ledger: the ids before turns[1] are not the ids that the engine was sent",
      "trained-is-sampled: the ids of turns[1] are not the ids that the engine returned",
    ]);
  });

  test("reports all findings of different kinds", () => {
    const row = JSON.parse(JSON.stringify(workedExample())) as Record<string, unknown[]>;
    row["tokenIds"]![1] = 2 ** 31;
    row["logprobs"]![4] = 0.25;
    row["policyVersions"]![7] = "";
    row["reward"] = ["1"];
    delete (row["turns"] as Record<string, unknown>[])[1]!["start"];
    expect(verifySample(row).map(({ rule }) => rule)).toEqual([
      "shape",
      "token-ids",
      "logprobs",
      "policy-versions",
      "reward",
    ]);
  });

  test("uses the facts about the run", () => {
    const row = workedExample();
    const rulesWith = (facts: SampleFacts) => verifySample(row, facts).map(({ rule }) => rule);
    expect(rulesWith({ vocabularySize: 100, namesVersions: true })).toEqual([]);
    expect(rulesWith({ vocabularySize: 99 })).toEqual(["vocabulary"]);
    const nameless = { ...row, policyVersions: row.tokenIds.map(() => "") };
    expect(verifySample(nameless)).toEqual([]);
    expect(verifySample(nameless, { namesVersions: true })).toMatchObject([
      { rule: "policy-versions" },
    ]);
  });

  test("finds missing logprobs, unless greedy sampling explains them", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1]);
    recorder.appendTurn(generation([10, 11, 12, 13, 14, 15, 16, 17], new Array(8).fill(0), "7"));
    const end = { outcome: "completed", stopReason: "finished", reward: 1 } as const;
    const [row] = toSamples(recorder.toSegments(), identity, end);
    expect(verifySample(row)).toEqual([
      {
        rule: "logprobs",
        detail: "the logprobs of all 8 sampled ids are 0: they were not reported",
      },
    ]);
    expect(verifySample(row, { mayBeCertain: true })).toEqual([]);
  });

  test("keeps a dropped stop with its logprob and version, and checks them", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1]);
    recorder.appendTurn(generation([10, 99], [-0.5, -0.25], "7"));
    recorder.appendDelta({ ids: [20], text: "", closeSynthesised: false, droppedStopId: 99 });
    recorder.appendTurn(generation([11], [-1], "7"));
    const end = { outcome: "completed", stopReason: "finished", reward: 1 } as const;
    const [row] = toSamples(recorder.toSegments(), identity, end);
    const dropped = {
      droppedStopId: 99,
      droppedStopLogprob: -0.25,
      droppedStopVersion: "7",
    };
    expect(row!.tokenIds).toEqual([1, 10, 20, 11]);
    expect(row!.turns[0]).toMatchObject({ start: 1, end: 2, ...dropped });
    expect(verifySample(row)).toEqual([]);
    const rulesWith = (change: object) =>
      verifySample({ ...row, turns: [{ ...row!.turns[0], ...change }, row!.turns[1]] }).map(
        ({ rule }) => rule,
      );
    expect(rulesWith({ droppedStopId: 98 })).toEqual(["trained-is-sampled"]);
    expect(rulesWith({ droppedStopLogprob: 0.1 })).toEqual(["dropped-stop"]);
    expect(rulesWith({ droppedStopVersion: undefined })).toEqual(["dropped-stop"]);
    expect(rulesWith({ finish: "length" })).toEqual(["dropped-stop"]);
    expect(
      rulesWith({
        droppedStopId: undefined,
        droppedStopLogprob: undefined,
        droppedStopVersion: undefined,
      }),
    ).toEqual(["trained-is-sampled"]);
  });
});

describe("verifyFile()", () => {
  const dirs: string[] = [];
  afterEach(async () => {
    for (const dir of dirs.splice(0)) await rm(dir, { recursive: true });
  });

  async function fileOf(...lines: string[]): Promise<string> {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-"));
    dirs.push(dir);
    const file = path.join(dir, "samples.jsonl");
    await writeFile(file, lines.map((line) => `${line}\n`).join(""));
    return file;
  }

  test("names line and rule", async () => {
    const sound = JSON.stringify(workedExample());
    const broken = JSON.stringify({ ...workedExample(), rolloutId: "t#1", lossMask: [0, 0, 0] });
    const file = await fileOf(sound, broken, '{"format":1,"tok');
    expect(await verifyFile(file)).toEqual({
      file,
      samples: 3,
      violations: [
        { line: 2, rule: "length", detail: "lossMask has 3 entries for 9 token ids" },
        {
          line: 3,
          rule: "json",
          detail: "the line is not valid JSON, or nests too deeply (a torn line?)",
        },
      ],
    });
  });

  test("ends with a finding, however deep a row nests", async () => {
    const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
    const sound = JSON.stringify(workedExample());
    const within = (depth: number): string => sound.replace(/"tokenIds":\[/, `$&${nested(depth)},`);
    const file = await fileOf(within(20_000), within(390), nested(20_000));
    const { violations } = await verifyFile(file);
    expect(violations.filter(({ rule }) => rule === "json").map(({ line }) => line)).toEqual([
      1, 3,
    ]);
    expect(violations.filter(({ line }) => line === 2).map(({ detail }) => detail)).toContain(
      `tokenIds[0] is ${"[".repeat(77)}..., expected a whole number from 0 to 2147483647`,
    );
  });

  test("finds a turn that is trained in two segments, and a segment that is missing", async () => {
    const first = workedExample();
    const file = await fileOf(
      JSON.stringify(first),
      JSON.stringify({ ...first, segment: 2 }),
      JSON.stringify({ ...first, rolloutId: "t#2", segment: 1 }),
    );
    const { violations } = await verifyFile(file);
    expect(violations.map(({ line, rule }) => `${line} ${rule}`)).toEqual([
      "2 segments",
      "2 trained-once",
      "2 trained-once",
      "3 segments",
    ]);
  });

  test("compares the prompt of a fork with the original's", async () => {
    const end = { outcome: "completed", stopReason: "user-left", reward: 1 } as const;
    const turn = (outputIds: readonly number[]): Generation => ({
      outputIds,
      logprobs: [-0.5, -0.5],
      finish: { type: "stop" },
      discarded: [],
      pieces: [{ requestId: "r", tokenCount: 2, policyVersion: "1", finish: "stop" }],
    });
    const rowOf = (rolloutId: string, shared: readonly number[], from?: string): string => {
      const recorder = new TrajectoryRecorder();
      recorder.openSegment([1, 2]);
      recorder.appendTurn(turn(shared));
      recorder.appendDelta({ ids: [5], text: "", closeSynthesised: false });
      if (from !== undefined) recorder.beginFork();
      recorder.appendTurn(turn([8, 99]));
      const forkedFrom =
        from === undefined ? {} : { forkedFrom: { rolloutId: from, turnIndex: 1 } };
      const place = { rolloutId, groupId: "t", taskId: "t", ...forkedFrom };
      return JSON.stringify(toSamples(recorder.toSegments(), place, end)[0]);
    };
    // No sampled token is shared, so another agent, or one with another opening, may be asked.
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1, 3]);
    recorder.beginFork();
    recorder.appendTurn(turn([7, 99]));
    const forkedFrom = { rolloutId: "t#0", turnIndex: 0 };
    const opened = { rolloutId: "t#4", groupId: "t", taskId: "t", forkedFrom };
    const file = await fileOf(
      JSON.stringify(toSamples(recorder.toSegments(), opened, end)[0]),
      // Forks may precede the row that they branch from, or exist without it.
      rowOf("t#2", [6, 99], "t#0"),
      rowOf("t#0", [7, 99]),
      rowOf("t#1", [7, 99], "t#0"),
      rowOf("t#3", [6, 99], "elsewhere#0"),
    );
    expect((await verifyFile(file)).violations).toEqual([
      {
        line: 2,
        rule: "fork",
        detail: 'the ids before turn 1 are not those before turn 1 of "t#0", from which t#2 parts',
      },
    ]);
  });

  test("names the file that cannot be read", async () => {
    await expect(verifyFile("/nowhere/samples.jsonl")).rejects.toThrow(
      "Cannot read /nowhere/samples.jsonl",
    );
  });
});
