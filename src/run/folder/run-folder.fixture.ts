import { readFile } from "node:fs/promises";
import path from "node:path";
import { episodeRow } from "../../episode/episode-row.fixture.ts";
import type { Episode } from "../../episode/episode.ts";
import { TrajectoryRecorder } from "../../trajectory/trajectory-recorder.ts";
import type { RunManifest } from "./run-manifest.ts";

/** A manifest with all members. */
export const testManifest: RunManifest = {
  format: 1,
  turnwright: "0.1.0",
  configuration: { env: "e", temperature: 1 },
  identity: { tokenizer: "t1", engine: "sglang" },
  found: { engine: "e" },
  promptTime: "2026-11-23T10:05:00.000",
};

/** An episode of `segmentCount` segments, `t#<sampleIndex>`, with ids of its own. */
export function testEpisode(
  sampleIndex: number,
  { segmentCount = 1, ...end }: Partial<Episode> & { readonly segmentCount?: number } = {},
): Episode {
  const recorder = new TrajectoryRecorder();
  for (let segment = 0; segment < segmentCount; segment++) {
    recorder.openSegment([1, 2, 100 + sampleIndex]);
    recorder.appendTurn({
      outputIds: [10, 20 + segment],
      logprobs: [-0.5, -1 / 3],
      finish: { type: "stop" },
      pieces: [{ requestId: "r", tokenCount: 2, policyVersion: "1", finish: "stop" }],
      discarded: [],
    });
  }
  const row = episodeRow({ taskIndex: 0, sampleIndex, rolloutId: `t#${sampleIndex}` });
  const counts = { ...row.counts, tokenCount: 5 * segmentCount };
  const segments = segmentCount === 0 ? [] : recorder.toSegments();
  return { ...row, counts, reward: 1, segments, ...end };
}

/** The end of an episode that the engine failed. */
export const failedEnd = {
  outcome: "failed",
  stopReason: "failure",
  failure: { party: "engine", code: "engine/timeout", message: "m" },
} as const;

/** Returns the rollout ids of a file's rows, in order. */
export async function rolloutIdsIn(dir: string, name: string): Promise<string[]> {
  const text = await readFile(path.join(dir, name), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { readonly rolloutId: string }).rolloutId);
}
