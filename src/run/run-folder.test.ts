import { createHash } from "node:crypto";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { Episode } from "../episode/episode.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { type EpisodeRow, RunFolder, type RunManifest } from "./run-folder.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-run-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const manifest: RunManifest = {
  format: 1,
  turnwright: "0.1.0",
  configuration: { env: "e", temperature: 1 },
  found: {},
};

function episode(rolloutId: string, end: Partial<Episode> = { reward: 1 }): Episode {
  const recorder = new TrajectoryRecorder();
  recorder.openSegment([1, 2]);
  recorder.appendTurn({
    outputIds: [10],
    logprobs: [-0.5],
    finish: { type: "stop" },
    pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "1", finish: "stop" }],
    discarded: [],
  });
  const row = episodeRow({ taskIndex: 0, sampleIndex: 0, rolloutId });
  return { ...row, segments: recorder.toSegments(), ...end };
}

const failed = {
  outcome: "failed",
  stopReason: "failure",
  failure: { party: "engine", code: "engine/timeout", message: "m" },
} as const;

async function idsIn(name: string): Promise<string[]> {
  const text = await readFile(path.join(dir, name), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { rolloutId: string }).rolloutId);
}

async function write(...episodes: Episode[]): Promise<void> {
  await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
  for (const value of episodes) await folder.writeEpisode(value);
}

describe("RunFolder", () => {
  test("knows on reopening what is finished", async () => {
    await write(episode("t#0"), episode("t#1", failed));
    await using again = await RunFolder.open(dir, manifest, { retryFailed: false });
    expect(again.finished.map(({ rolloutId, outcome }) => [rolloutId, outcome])).toEqual([
      ["t#0", "completed"],
      ["t#1", "failed"],
    ]);
    expect(again.finished[0]).not.toHaveProperty("segments");
  });

  test("drops the samples of an episode whose own line a crash swallowed", async () => {
    await write(episode("t#0"), episode("t#1"));
    const file = path.join(dir, "episodes.jsonl");
    const [first] = (await readFile(file, "utf8")).split("\n");
    await writeFile(file, `${first}\n{"format":1,"rolloutId":"t#1","outc`);
    {
      await using again = await RunFolder.open(dir, manifest, { retryFailed: false });
      expect(again.finished.map(({ rolloutId }) => rolloutId)).toEqual(["t#0"]);
      await again.writeEpisode(episode("t#1"));
    }
    expect(await idsIn("samples.jsonl")).toEqual(["t#0", "t#1"]);
    expect(await idsIn("episodes.jsonl")).toEqual(["t#0", "t#1"]);
  });

  test("cuts off a torn row of samples", async () => {
    await write(episode("t#0"));
    await appendFile(path.join(dir, "samples.jsonl"), '{"format":1,"rolloutId":"t#1","tok');
    await using again = await RunFolder.open(dir, manifest, { retryFailed: false });
    await again.writeEpisode(episode("t#1"));
    expect(await idsIn("samples.jsonl")).toEqual(["t#0", "t#1"]);
  });

  test("forgets failed episodes where they are to be played again", async () => {
    await write(episode("t#0"), episode("t#1", failed));
    await using again = await RunFolder.open(dir, manifest, { retryFailed: true });
    expect(again.finished.map(({ rolloutId }) => rolloutId)).toEqual(["t#0"]);
    expect(await idsIn("samples.jsonl")).toEqual(["t#0"]);
    expect(await idsIn("episodes.jsonl")).toEqual(["t#0"]);
  });

  test("refuses a folder of another configuration, naming what differs", async () => {
    await write(episode("t#0"));
    const other = { ...manifest, configuration: { env: "e", temperature: 0.5, split: "train" } };
    await expect(RunFolder.open(dir, other, { retryFailed: false })).rejects.toThrow(
      `Cannot resume ${dir}: temperature was 1 and is 0.5; split was undefined and is "train"`,
    );
  });

  test("refuses a folder of episodes without their run.json", async () => {
    await writeFile(path.join(dir, "episodes.jsonl"), "{}\n");
    await expect(RunFolder.open(dir, manifest, { retryFailed: false })).rejects.toThrow(
      `Cannot use ${dir}: it holds episodes but no run.json`,
    );
  });

  test("keeps the hash of each row of samples with the episode", async () => {
    await write(episode("t#0"));
    const rows = async (name: string) => (await readFile(path.join(dir, name), "utf8")).split("\n");
    const [sample] = await rows("samples.jsonl");
    const [row] = await rows("episodes.jsonl");
    expect((JSON.parse(row!) as EpisodeRow).sampleHashes).toEqual([
      createHash("sha256").update(sample!).digest("hex"),
    ]);
  });

  test("makes slime's rows of what is finished, also by an earlier start", async () => {
    const open = () => RunFolder.open(dir, manifest, { format: "slime", retryFailed: false });
    const attempts = ["t#0", "t#1"].map((rolloutId, index) => ({
      rolloutId,
      groupIndex: 3,
      index,
    }));
    const slimeRows = async () =>
      (await readFile(path.join(dir, "samples.slime.jsonl"), "utf8"))
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as object);
    {
      await using folder = await open();
      expect(folder.slimeFile).toBe(path.join(dir, "samples.slime.jsonl"));
      await folder.writeEpisode(episode("t#1"));
      expect(await folder.writeSlime(attempts)).toEqual({
        groups: 0,
        rows: 0,
        leftOut: { unfinished: 1 },
      });
      expect(await slimeRows()).toEqual([]);
    }
    await using again = await open();
    await again.writeEpisode(episode("t#0", { reward: 0 }));
    expect(await again.writeSlime(attempts)).toEqual({ groups: 1, rows: 2 });
    const shared = {
      group_index: 3,
      tokens: [1, 2, 10],
      loss_mask: [1],
      rollout_log_probs: [-0.5],
    };
    expect(await slimeRows()).toMatchObject([
      { ...shared, index: 0, reward: 0, metadata: { rollout: "t#0" } },
      { ...shared, index: 1, reward: 1, metadata: { rollout: "t#1" } },
    ]);
  });

  test("writes nothing for slime where nobody asked", async () => {
    await write(episode("t#0"));
    await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
    const attempts = [{ rolloutId: "t#0", groupIndex: 0, index: 0 }];
    expect(await folder.writeSlime(attempts)).toBeUndefined();
    expect(folder.slimeFile).toBeUndefined();
  });
});
