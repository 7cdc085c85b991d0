import { countEpisode } from "../episode/count-episode.ts";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { Episode, TurnRecord } from "../episode/episode.ts";
import { RunFolder, type RunManifest } from "../run/folder/run-folder.ts";
import { RunTally } from "../run/run-progress.ts";
import type { RolloutEnd } from "../trajectory/sample.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";

const sampleCount = 2;
const stopId = 99;

const allTasks = [0, 1, 2, 3, 4, 5, 6, 7, 8];

const manifestOf = (taskIndexes: readonly number[]): RunManifest => ({
  format: 1,
  turnwright: "0.1.0",
  configuration: {
    env: "shop",
    tasks: taskIndexes === allTasks ? "0-8" : taskIndexes.join(","),
    samples: sampleCount,
  },
  identity: { tokenizer: "t1", engine: "fake" },
  found: {
    engine: { kind: "fake", logprobConvention: "tempered", policyVersion: "7" },
    vocabularySize: 200,
    plan: { environment: "shop", split: "test", taskIndexes, sampleCount, seed: 40 },
    settings: { temperature: 1 },
  },
});

interface Story {
  readonly turnCount: number;
  readonly end: RolloutEnd;
  /** The turn before which a new segment begins. */
  readonly splitAt?: number;
  /** The turn within which the policy's version goes from 7 to 8. */
  readonly updatedAt?: number;
  /** The turn whose stop the row must not contain. */
  readonly dropsAt?: number;
}

const left = (reward: number): RolloutEnd => ({
  outcome: "completed",
  stopReason: "user-left",
  reward,
});
const plain = (turnCount: number, reward: number): Story => ({ turnCount, end: left(reward) });
const failure = { party: "engine", code: "engine/timeout", message: "no answer" } as const;

/** By task, the stories of its attempts; `undefined` for one that is not finished. */
const stories: readonly (readonly (Story | undefined)[])[] = [
  [plain(2, 1), plain(3, 0)],
  [
    { turnCount: 3, end: { outcome: "truncated", stopReason: "max-turns", reward: 0 } },
    { turnCount: 2, end: { outcome: "truncated", stopReason: "length", reward: 1 } },
  ],
  [{ ...plain(3, 1), updatedAt: 1 }, plain(2, 0)],
  [{ ...plain(4, 1), splitAt: 2 }, plain(2, 0)],
  [{ turnCount: 2, end: { outcome: "failed", stopReason: "failure", failure } }, plain(2, 1)],
  [{ turnCount: 2, end: { outcome: "truncated", stopReason: "deadline" } }, plain(2, 1)],
  [undefined, plain(2, 1)],
  [
    { turnCount: 0, end: { outcome: "truncated", stopReason: "context-full", reward: 0 } },
    plain(2, 1),
  ],
  [{ ...plain(3, 0.5), dropsAt: 1 }, plain(2, 0)],
];

/**
 * Writes the folder of a run with every kind of episode that an exporter distinguishes: nine tasks,
 * two attempts each, the second a plain one. Task 3 alone has an attempt with several rows.
 */
export async function writeEveryKindRun(
  dir: string,
  taskIndexes: readonly number[] = allTasks,
): Promise<void> {
  const manifest = manifestOf(taskIndexes);
  const episodes = taskIndexes.flatMap((taskIndex) =>
    stories[taskIndex]!.flatMap((story, sampleIndex) =>
      story === undefined ? [] : [toEpisode(story, { taskIndex, sampleIndex })],
    ),
  );
  const tally = new RunTally({ planned: taskIndexes.length * sampleCount, now: () => 0 });
  await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
  await folder.writeEvent({ type: "run-started", atMs: 0, manifest });
  // They end in another order than that of the plan.
  for (const episode of episodes.toReversed()) {
    tally.episodeStarted();
    const episodeHash = await folder.writeEpisode(episode);
    tally.episodeFinished(episode);
    const { rolloutId, outcome, stopReason, reward } = episode;
    const event = { rolloutId, outcome, stopReason, ...(reward !== undefined && { reward }) };
    await folder.writeEvent({ type: "episode-finished", atMs: 1, ...event, episodeHash });
  }
  await folder.results.writeSummary({ end: "interrupted", ...tally.progress() });
}

function toEpisode(
  story: Story,
  { taskIndex, sampleIndex }: { readonly taskIndex: number; readonly sampleIndex: number },
): Episode {
  const recorder = new TrajectoryRecorder();
  const turns: TurnRecord[] = [];
  recorder.openSegment([1, 2, 3, taskIndex + 10]);
  for (let turnIndex = 0; turnIndex < story.turnCount; turnIndex++) {
    if (story.splitAt === turnIndex) recorder.openSegment([1, 2, 3, taskIndex + 10, 50]);
    const promptTokenCount = recorder.length;
    const isLast = turnIndex + 1 === story.turnCount;
    recordTurn(recorder, story, { turnIndex, taskIndex, sampleIndex });
    const turn = toTurn(turnIndex, promptTokenCount);
    const isCutOff = isLast && story.end.stopReason === "length";
    turns.push(isCutOff ? { ...turn, finish: "length" } : turn);
    const isAnswered = !isLast || (story.end.outcome !== "completed" && !isCutOff);
    if (!isAnswered || story.splitAt === turnIndex + 1) continue;
    const dropped = story.dropsAt === turnIndex ? { droppedStopId: stopId } : {};
    recorder.appendDelta({ ids: [60, 61], text: "", closeSynthesised: false, ...dropped });
  }
  const segments = recorder.toSegments();
  const { sampleHashes: _, ...about } = episodeRow({
    taskIndex,
    sampleIndex,
    seed: 40 + taskIndex * sampleCount + sampleIndex,
    messages: [
      { role: "system", content: "Sell lamps." },
      { role: "user", content: `I want lamp ${taskIndex}.` },
      { role: "assistant", content: "Here it is." },
    ],
  });
  return { ...about, ...story.end, turns, counts: countEpisode(turns, segments, 0), segments };
}

function recordTurn(
  recorder: TrajectoryRecorder,
  { updatedAt, turnCount, end }: Story,
  place: { readonly turnIndex: number; readonly taskIndex: number; readonly sampleIndex: number },
): void {
  const { turnIndex, taskIndex, sampleIndex } = place;
  const first = 100 + 10 * turnIndex + sampleIndex;
  const isCutOff = turnIndex + 1 === turnCount && end.stopReason === "length";
  const piece = (
    tokenCount: number,
    policyVersion: string,
    finish: "stop" | "length" | "abort",
  ) => ({
    requestId: "r",
    tokenCount,
    policyVersion,
    finish,
  });
  const wasUpdated = updatedAt !== undefined && updatedAt < turnIndex;
  const finish = isCutOff ? "length" : "stop";
  recorder.appendTurn({
    outputIds: [first, first + 1, first + 2, isCutOff ? 120 : stopId],
    logprobs: [-0.5, -0.25, -1 / (taskIndex + 3), -0.125],
    finish: isCutOff ? { type: "length" } : { type: "stop", matched: stopId },
    pieces:
      updatedAt === turnIndex
        ? [piece(2, "7", "abort"), piece(2, "8", finish)]
        : [piece(4, wasUpdated ? "8" : "7", finish)],
    discarded: [],
  });
}

function toTurn(turnIndex: number, promptTokenCount: number): TurnRecord {
  return {
    turnIndex,
    text: "[sell lamp]",
    finish: "stop",
    sampledTokenCount: 4,
    promptTokenCount,
    attemptCounts: { ok: 1 },
    attempts: [{ status: "ok", name: "sell", span: [0, 11], tokenSpan: [0, 3] }],
    steps: [{ source: "sell", callId: `c${turnIndex}`, observation: "sold", result: "acted" }],
    engineMs: 1,
    environmentMs: 1,
  };
}
