import { describe, expect, test } from "vitest";
import { episodeRow } from "../../episode/episode-row.fixture.ts";
import type { Episode } from "../../episode/episode.ts";
import { episodeSamples } from "../folder/episode-samples.ts";
import { TrajectoryRecorder } from "../../trajectory/trajectory-recorder.ts";
import { toSlimeGroup } from "./slime.ts";

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
    rewardDetails: { orders: "as wanted" },
    turns: [
      { ...turn(0, "call"), environmentMs: 500 },
      { ...turn(1, "done"), promptTokenCount: 7, cachedTokenCount: 2, environmentMs: 250 },
    ],
  });
  return { ...row, segments: recorded().toSegments(), ...fields };
}

/** A group of these attempts. */
function groupOf(...episodes: readonly (Episode | undefined)[]) {
  return toSlimeGroup(
    episodes.map((played, index) => ({
      episode: played,
      samples: played === undefined ? [] : episodeSamples(played),
      place: { groupIndex: 2, index: 8 + index },
    })),
  );
}

const failed: Partial<Episode> = {
  outcome: "failed",
  stopReason: "failure",
  failure: { party: "user", code: "user/timeout", message: "m" },
};

describe("toSlimeGroup()", () => {
  test("gives slime's row of the worked example", () => {
    expect(groupOf(episode({ reward: 1 }))).toMatchObject({
      rows: [
        {
          group_index: 2,
          index: 8,
          rollout_id: 8,
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
          label: null,
          session_id: "t#0",
          non_generation_time: 0.75,
          prefix_cache_info: { cached_tokens: 2, total_prompt_tokens: 10 },
          metadata: {
            rollout: "t#0",
            task: "t",
            source_name: "e",
            stop_reason: "user-left",
            user_usage: { callCount: 2, inputTokenCount: 30, outputTokenCount: 3 },
            reward_details: { orders: "as wanted" },
          },
        },
      ],
    });
  });

  test("gives one row an attempt, in their order, with rewards that are numbers", () => {
    const cut = { outcome: "truncated", stopReason: "max-turns", reward: 0 } as const;
    const group = groupOf(episode({ reward: 1 }), episode(cut));
    expect(group).toMatchObject({
      rows: [
        { index: 8, group_index: 2, reward: 1, status: "completed" },
        { index: 9, group_index: 2, reward: 0, status: "truncated" },
      ],
    });
  });

  test("gives the ids and texts of a fork after its shared turns", () => {
    const recorder = new TrajectoryRecorder();
    recorder.openSegment([1, 2, 3, 10, 11, 20, 21]);
    recorder.beginFork();
    recorder.appendTurn({
      outputIds: [12, 99],
      logprobs: [-0.3, -0.4],
      finish: { type: "stop" },
      discarded: [],
      pieces: [{ requestId: "r", tokenCount: 2, policyVersion: "8", finish: "stop" }],
    });
    const forkedFrom = { rolloutId: "t#1", turnIndex: 1 };
    const group = groupOf(episode({ reward: 1, forkedFrom, segments: recorder.toSegments() }));
    expect(group).toMatchObject({
      rows: [
        {
          response: "done",
          response_length: 2,
          non_generation_time: 0.25,
          prefix_cache_info: { cached_tokens: 2, total_prompt_tokens: 7 },
        },
      ],
    });
  });

  test("leaves out a complete group if slime could not read one of its attempts", () => {
    const scored = episode({ reward: 1 });
    expect(groupOf(scored, undefined)).toEqual({ leftOut: "unfinished" });
    expect(groupOf(scored, episode(failed))).toEqual({ leftOut: "unscored" });
    const late = { outcome: "truncated", stopReason: "deadline" } as const;
    expect(groupOf(episode(late), scored)).toEqual({ leftOut: "unscored" });
    expect(groupOf(episode({ ...failed, segments: [] }))).toEqual({ leftOut: "unscored" });
    expect(groupOf(episode({ reward: 0, segments: [] }))).toEqual({ leftOut: "no-response" });
  });

  test("gives all rows of an attempt one rollout id, each with its own turns", () => {
    const split = recorded();
    split.openSegment([1, 2]);
    split.appendTurn({
      outputIds: [10],
      logprobs: [-0.5],
      finish: { type: "stop" },
      pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "8", finish: "stop" }],
      discarded: [],
    });
    // A row without a sampled token goes to no trainer.
    split.openSegment([1, 2, 3]);
    const played = episode({ reward: 0, segments: split.toSegments() });
    const [first, second] = played.turns;
    const turns = [first!, second!, { ...first!, turnIndex: 2, text: "again" }];
    const lineage = { role: "main", rowCount: 2, attemptTokenCount: 5 };
    expect(groupOf({ ...played, turns }, episode({ reward: 1 }))).toMatchObject({
      rows: [
        {
          index: 8,
          rollout_id: 8,
          response: "calldone",
          prefix_cache_info: { cached_tokens: 2, total_prompt_tokens: 10 },
          metadata: { rollout: "t#0", lineage: { ...lineage, row: 0 } },
        },
        {
          index: 8,
          rollout_id: 8,
          response: "again",
          non_generation_time: 0.5,
          prefix_cache_info: { cached_tokens: 0, total_prompt_tokens: 3 },
          metadata: {
            rollout: "t#0",
            lineage: { ...lineage, row: 1, from: { row: 0, turn: 1, edge: "continuation" } },
          },
        },
        { index: 9, rollout_id: 9, response: "calldone" },
      ],
    });
  });

  test("leaves out a group if an attempt has no response", () => {
    const unsampled = recorded()
      .toSegments()
      .map((segment) => ({ ...segment, lossMask: segment.lossMask.map(() => 0 as const) }));
    expect(groupOf(episode({ reward: 1 }), episode({ reward: 9, segments: unsampled }))).toEqual({
      leftOut: "no-response",
    });
    const silent = new TrajectoryRecorder();
    silent.openSegment([1, 2]);
    expect(groupOf(episode({ reward: 0, segments: silent.toSegments() }))).toEqual({
      leftOut: "no-response",
    });
  });
});
