import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { Episode } from "../episode/episode.ts";
import { toSamples } from "../trajectory/sample.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { toSlimeSamples } from "./slime.ts";

function recorded(): TrajectoryRecorder {
  const recorder = new TrajectoryRecorder();
  const turn = (outputIds: number[], logprobs: number[], policyVersion: string) =>
    recorder.appendTurn({
      outputIds,
      logprobs,
      finish: { type: "stop" },
      pieces: [{ requestId: "r", tokenCount: outputIds.length, policyVersion, finish: "stop" }],
      discarded: [],
    });
  recorder.openSegment([1, 2, 3]);
  turn([10, 11], [-0.1, -0.2], "7");
  recorder.appendDelta({ ids: [20, 21], text: "", closeSynthesised: false });
  turn([12, 99], [-0.3, -0.4], "8");
  return recorder;
}

function episode(fields: Partial<Episode>): Episode {
  const turn = (turnIndex: number, text: string) => ({
    turnIndex,
    text,
    finish: "stop" as const,
    sampledTokenCount: 2,
    promptTokenCount: 3,
    attemptCounts: {},
    steps: [],
    engineMs: 0,
    environmentMs: 0,
  });
  const row = episodeRow({
    taskIndex: 0,
    sampleIndex: 0,
    rolloutId: "t#0",
    groupId: "t",
    taskId: "t",
    environment: "e",
    messages: [
      { role: "system", content: "policy" },
      { role: "user", content: "hello" },
      { role: "assistant", content: "call" },
    ],
    turns: [turn(0, "call"), turn(1, "done")],
  });
  return { ...row, segments: recorded().toSegments(), ...fields };
}

describe("toSlimeSamples()", () => {
  test("gives slime's row of the worked example", () => {
    const played = episode({ reward: 1 });
    const samples = toSamples(played.segments, played, played, {});
    expect(toSlimeSamples(played, samples, { groupIndex: 0, index: 0 })).toEqual([
      {
        group_index: 0,
        index: 0,
        rollout_id: 0,
        prompt: [
          { role: "system", content: "policy" },
          { role: "user", content: "hello" },
        ],
        tokens: [1, 2, 3, 10, 11, 20, 21, 12, 99],
        response: "calldone",
        response_length: 6,
        loss_mask: [1, 1, 0, 0, 1, 1],
        rollout_log_probs: [-0.1, -0.2, 0, 0, -0.3, -0.4],
        reward: 1,
        status: "completed",
        weight_versions: ["7", "8"],
        remove_sample: false,
        metadata: { rollout: "t#0", task: "t", stop_reason: "user-left", segment: 0 },
      },
    ]);
  });

  test("keeps an unscored episode out of training, without a reward of 0", () => {
    const failure = { party: "user", code: "user/timeout", message: "m" } as const;
    const played = episode({ outcome: "failed", stopReason: "failure", failure });
    const samples = toSamples(played.segments, played, played, {});
    const [row] = toSlimeSamples(played, samples, { groupIndex: 2, index: 17 });
    expect(row).toMatchObject({
      group_index: 2,
      index: 17,
      reward: null,
      status: "failed",
      remove_sample: true,
      loss_mask: [1, 1, 0, 0, 1, 1],
    });
    expect(row!.metadata).toMatchObject({ failure });
  });

  test("gives slime's masked placeholder where nothing was recorded", () => {
    const failure = { party: "user", code: "user/timeout", message: "m" } as const;
    const played = episode({ outcome: "failed", stopReason: "failure", failure, segments: [] });
    expect(toSlimeSamples(played, [], { groupIndex: 0, index: 3 })).toMatchObject([
      {
        tokens: [0, 0],
        response_length: 1,
        loss_mask: [0],
        rollout_log_probs: [0],
        reward: null,
        remove_sample: true,
        weight_versions: [],
      },
    ]);
  });

  test("gives the segments of one rollout the same rollout id", () => {
    const recorder = recorded();
    recorder.openSegment([1, 2]);
    recorder.appendTurn({
      outputIds: [30],
      logprobs: [-0.5],
      finish: { type: "stop" },
      pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "8", finish: "stop" }],
      discarded: [],
    });
    const played = episode({ reward: 0, segments: recorder.toSegments() });
    const samples = toSamples(played.segments, played, played, {});
    const rows = toSlimeSamples(played, samples, { groupIndex: 0, index: 5 });
    expect(rows.map((row) => [row.rollout_id, row.tokens, row.loss_mask])).toEqual([
      [5, [1, 2, 3, 10, 11, 20, 21, 12, 99], [1, 1, 0, 0, 1, 1]],
      [5, [1, 2, 30], [1]],
    ]);
  });
});
