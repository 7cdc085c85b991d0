import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import { toTauBenchResult, writeTauBenchResults } from "./tau-bench-results.ts";

describe("toTauBenchResult()", () => {
  test("writes a scored episode as τ-bench does, with floats as floats", () => {
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
    expect(stringifyPythonJson(toTauBenchResult({ row, trial: 1 }, task))).toBe(
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

  test("writes an attempt that broke off with reward 0 and its error, as τ-bench does", () => {
    const failure = { party: "user", code: "user/timeout", message: "no reply" } as const;
    const row = episodeRow({
      taskIndex: 0,
      sampleIndex: 0,
      outcome: "failed",
      stopReason: "failure",
      failure,
    });
    expect(stringifyPythonJson(toTauBenchResult({ row, trial: 0 }, undefined))).toBe(
      '{"task_id": 0, "reward": 0.0, "info": {"error": "no reply", "traceback": "", "failure": ' +
        '"user/timeout"}, "traj": [], "trial": 0}',
    );
  });

  test("has no reward_info where nothing ended the conversation", () => {
    const rewardDetails = { done: false, why: "…" };
    const row = episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 0, rewardDetails });
    expect(
      (toTauBenchResult({ row, trial: 0 }, undefined).get("info") as Map<string, unknown>).get(
        "reward_info",
      ),
    ).toBe(null);
  });
});

describe("writeTauBenchResults()", () => {
  test("writes one JSON list, also of nothing", async () => {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-results-"));
    try {
      const file = path.join(dir, "results.json");
      await writeTauBenchResults(file, rows(2), () => new Map([["instruction", "x"]]));
      const results = JSON.parse(await readFile(file, "utf8")) as { readonly trial: number }[];
      expect(results.map(({ trial }) => trial)).toEqual([0, 1]);
      await writeTauBenchResults(file, rows(0), undefined);
      expect(await readFile(file, "utf8")).toBe("[]\n");
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});

async function* rows(count: number) {
  for (let sampleIndex = 0; sampleIndex < count; sampleIndex++) {
    const row = episodeRow({ taskIndex: 0, sampleIndex, reward: 1 });
    yield await Promise.resolve({ row, trial: sampleIndex });
  }
}
