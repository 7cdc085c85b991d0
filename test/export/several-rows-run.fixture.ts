import { countEpisode } from "../../src/episode/count-episode.ts";
import { episodeRow } from "../../src/episode/episode-row.fixture.ts";
import type { Episode, TurnRecord } from "../../src/episode/episode.ts";
import { RunFolder, type RunManifest } from "../../src/run/folder/run-folder.ts";
import { RunTally } from "../../src/run/run-progress.ts";
import { TrajectoryRecorder } from "../../src/trajectory/trajectory-recorder.ts";

const sampleCount = 4;
const taskIndexes = [0, 1];

const manifest: RunManifest = {
  format: 1,
  turnwright: "0.1.0",
  configuration: { env: "lamps", tasks: "0-1", samples: sampleCount },
  identity: { tokenizer: "t1", engine: "fake" },
  found: {
    engine: { kind: "fake", logprobConvention: "tempered", policyVersion: "3" },
    vocabularySize: 200,
    plan: { environment: "lamps", split: "train", taskIndexes, sampleCount, seed: 7 },
    settings: { temperature: 1 },
  },
};

/** The start of a row's prompt: the task's, a sub-agent's, or the task's with a summary. */
type Start = "task" | "subagent" | "summary";

interface Row {
  readonly start: Start;
  /** The number of sampled tokens of each turn. */
  readonly turns: readonly number[];
}

interface Story {
  readonly reward: number;
  readonly rows: readonly Row[];
}

const row = (start: Start, ...turns: readonly number[]): Row => ({ start, turns });

/**
 * By task, the stories of its attempts: 1, 3, 2, 1 and 1, 1, 2, 1 rows. No reward equals its group's
 * mean, so each attempt has an advantage. Attempts differ in their number of tokens, so that laws by
 * which a loss may weigh them differ.
 */
const stories: readonly (readonly Story[])[] = [
  [
    { reward: 1, rows: [row("task", 4, 2)] },
    { reward: 0.25, rows: [row("task", 3, 2), row("subagent", 4), row("summary", 2, 3)] },
    { reward: 0, rows: [row("task", 2), row("summary", 3, 3)] },
    { reward: 0.5, rows: [row("task", 2)] },
  ],
  [
    { reward: 0, rows: [row("task", 3)] },
    { reward: 1, rows: [row("task", 5, 1)] },
    { reward: 0.75, rows: [row("task", 2, 2), row("subagent", 3)] },
    { reward: 0.5, rows: [row("task", 4, 5)] },
  ],
];

/**
 * Writes the folder of a run with two groups of four attempts. Three attempts have several rows: after
 * compaction, with a sub-agent, or both.
 */
export async function writeSeveralRowsRun(dir: string): Promise<void> {
  const episodes = stories.flatMap((group, taskIndex) =>
    group.map((story, sampleIndex) => toEpisode(story, taskIndex, sampleIndex)),
  );
  const tally = new RunTally({ planned: episodes.length, now: () => 0 });
  await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
  await folder.writeEvent({ type: "run-started", atMs: 0, manifest });
  for (const episode of episodes) {
    tally.episodeStarted();
    const episodeHash = await folder.writeEpisode(episode);
    tally.episodeFinished(episode);
    const { rolloutId, outcome, stopReason, reward } = episode;
    await folder.writeEvent({
      type: "episode-finished",
      atMs: 1,
      rolloutId,
      outcome,
      stopReason,
      reward: reward!,
      episodeHash,
    });
  }
  await folder.results.writeSummary({ end: "finished", ...tally.progress() });
}

function toEpisode({ reward, rows }: Story, taskIndex: number, sampleIndex: number): Episode {
  const recorder = new TrajectoryRecorder();
  const turns: TurnRecord[] = [];
  const prompts: Readonly<Record<Start, readonly number[]>> = {
    task: [1, 2, 10 + taskIndex],
    subagent: [5, 6, 7],
    summary: [1, 2, 10 + taskIndex, 8, 8],
  };
  let nextId = 100 + 20 * sampleIndex;
  for (const { start, turns: counts } of rows) {
    recorder.openSegment(prompts[start]);
    for (const [index, count] of counts.entries()) {
      if (index > 0) recorder.appendDelta({ ids: [60, 61], text: "", closeSynthesised: false });
      turns.push(toTurn(turns.length, count, recorder.length));
      recorder.appendTurn({
        outputIds: Array.from({ length: count }, () => nextId++),
        logprobs: Array.from({ length: count }, (_, place) => -0.125 * (place + 1)),
        finish: { type: "stop", matched: nextId - 1 },
        pieces: [{ requestId: "r", tokenCount: count, policyVersion: "3", finish: "stop" }],
        discarded: [],
      });
    }
  }
  const segments = recorder.toSegments();
  const { sampleHashes: _, ...about } = episodeRow({
    environment: "lamps",
    split: "train",
    taskIndex,
    sampleIndex,
    seed: 7 + taskIndex * sampleCount + sampleIndex,
    messages: [
      { role: "user", content: `I want lamp ${taskIndex}.` },
      { role: "assistant", content: "Here it is." },
    ],
  });
  const end = { outcome: "completed", stopReason: "user-left", reward } as const;
  return { ...about, ...end, turns, counts: countEpisode(turns, segments, 0), segments };
}

function toTurn(turnIndex: number, sampledTokenCount: number, promptTokenCount: number) {
  return {
    turnIndex,
    text: "[sell lamp]",
    finish: "stop",
    sampledTokenCount,
    promptTokenCount,
    attemptCounts: {},
    attempts: [],
    steps: [],
    engineMs: 1,
    environmentMs: 1,
  } satisfies TurnRecord;
}
