import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import type { NumberedEpisode } from "./number-trials.ts";
import { writeTauBenchResults } from "./tau-bench-results.ts";

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-results-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

/** Returns an episode's entry in a results file of its own. */
async function resultOf(episode: NumberedEpisode, task: PyValue | undefined): Promise<string> {
  const file = path.join(dir, "result.json");
  const episodes = (async function* () {
    yield await Promise.resolve(episode);
  })();
  await writeTauBenchResults(file, episodes, task === undefined ? undefined : () => task);
  return (await readFile(file, "utf8")).slice("[\n".length, -"\n]\n".length);
}

describe("writeTauBenchResults()", () => {
  test("writes a scored episode as τ-bench does, with floats as floats", async () => {
    const row = episodeRow({
      taskIndex: 3,
      sampleIndex: 1,
      reward: 1,
      rewardDetails: {
        reward: 1,
        info: { r_actions: 1, gt_data_hash: "ab" },
        actions: [{ name: "cancel", kwargs: { id: "#1", count: 2 } }],
        difference: { state: [] },
      },
      messages: [
        { role: "user", content: "é" },
        {
          role: "assistant",
          content: "",
          toolCalls: [{ id: "c1", name: "cancel", argumentsText: '{"id": 1.0}' }],
        },
        { role: "tool", content: "ok", toolCallId: "c1", name: "cancel" },
        { role: "assistant", content: "Done." },
      ],
    });
    const task = new Map([["instruction", "Cancel."]]);
    expect(await resultOf({ row, trial: 1 }, task)).toBe(
      '{"task_id": 3, "reward": 1.0, "info": {"task": {"instruction": "Cancel."}, "source": null, ' +
        '"user_cost": null, "reward_info": {"reward": 1.0, "info": {"r_actions": 1.0, ' +
        '"gt_data_hash": "ab"}, "actions": [{"name": "cancel", "kwargs": {"id": "#1", "count": 2}}]}, ' +
        '"stop_reason": "user-left"}, "traj": [{"role": "user", "content": "\\u00e9"}, ' +
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", ' +
        '"function": {"name": "cancel", "arguments": "{\\"id\\": 1.0}"}}]}, {"role": "tool", ' +
        '"tool_call_id": "c1", "name": "cancel", "content": "ok"}, {"role": "assistant", ' +
        '"content": "Done."}], "trial": 1}',
    );
  });

  test("writes an attempt that broke off with reward 0 and its error, as τ-bench does", async () => {
    const failure = { party: "user", code: "user/timeout", message: "no reply" } as const;
    const row = episodeRow({
      taskIndex: 0,
      sampleIndex: 0,
      outcome: "failed",
      stopReason: "failure",
      failure,
    });
    expect(await resultOf({ row, trial: 0 }, undefined)).toBe(
      '{"task_id": 0, "reward": 0.0, "info": {"error": "no reply", "traceback": "", "failure": ' +
        '"user/timeout"}, "traj": [], "trial": 0}',
    );
  });

  test("has no reward_info for an unfinished conversation", async () => {
    const rewardDetails = { done: false, why: "…" };
    const row = episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 0, rewardDetails });
    expect(JSON.parse(await resultOf({ row, trial: 0 }, undefined))).toMatchObject({
      info: { reward_info: null },
    });
  });

  test("writes one JSON list, also an empty one", async () => {
    const file = path.join(dir, "results.json");
    await writeTauBenchResults(file, rows(2), () => new Map([["instruction", "x"]]));
    const results = JSON.parse(await readFile(file, "utf8")) as { readonly trial: number }[];
    expect(results.map(({ trial }) => trial)).toEqual([0, 1]);
    await writeTauBenchResults(file, rows(0), undefined);
    expect(await readFile(file, "utf8")).toBe("[]\n");
  });
});

async function* rows(count: number) {
  for (let sampleIndex = 0; sampleIndex < count; sampleIndex++) {
    const row = episodeRow({ taskIndex: 0, sampleIndex, reward: 1 });
    yield await Promise.resolve({ row, trial: sampleIndex });
  }
}
