import { countEpisode } from "../episode/count-episode.ts";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { AttemptRecord, Episode, TurnRecord } from "../episode/episode.ts";
import { RunFolder, type RunManifest } from "../run/folder/run-folder.ts";
import { RunTally } from "../run/run-progress.ts";
import type { RolloutEnd } from "../trajectory/sample.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";

const sampleCount = 2;
const promptIds = [1, 2, 3];
const stopId = 99;

const manifest: RunManifest = {
  format: 1,
  turnwright: "0.1.0",
  configuration: { env: "shop", tasks: "0-3", samples: sampleCount, format: "slime" },
  identity: {
    tokenizer: "t1",
    engine: "fake",
    servedModel: "m",
    vocabularySize: "200",
    chatTemplate: "c1",
    stopTokens: "99",
  },
  found: {
    template: { templateHash: "c1" },
    engine: { kind: "fake", model: "m", logprobConvention: "tempered", policyVersion: "7" },
    vocabularySize: 200,
    plan: { environment: "shop", split: "test", taskIndexes: [0, 1, 2, 3], sampleCount, seed: 40 },
    settings: { env: "shop", tasks: "0-3", samples: sampleCount, format: "slime", temperature: 1 },
  },
};

/** The events of an attempt besides its turns, each of which samples four ids. */
interface Story {
  readonly turnCount: number;
  readonly end: RolloutEnd;
  /** The turn before which a new segment begins. */
  readonly splitAt?: number;
  /** The turn whose stop the row must not contain. */
  readonly dropsAt?: number;
  readonly troubles?: Episode["troubles"];
}

const left = (reward: number): RolloutEnd => ({
  outcome: "completed",
  stopReason: "user-left",
  reward,
});
const failure = { party: "engine", code: "engine/timeout", message: "no answer" } as const;
const trouble = { party: "user", code: "user/timeout", message: "no answer" } as const;

/** The position of each turn's call. */
type AttemptSpans = Pick<AttemptRecord, "span" | "tokenSpan">;

/** By task, the stories of its attempts. */
const stories: readonly (readonly Story[])[] = [
  [
    { turnCount: 2, end: left(1) },
    { turnCount: 3, end: left(0) },
  ],
  [
    { turnCount: 3, end: { outcome: "truncated", stopReason: "max-turns", reward: 0 } },
    { turnCount: 2, end: left(1) },
  ],
  [
    { turnCount: 4, end: left(1), splitAt: 2 },
    { turnCount: 2, end: left(1), troubles: [trouble] },
  ],
  [
    { turnCount: 2, end: { outcome: "failed", stopReason: "failure", failure } },
    { turnCount: 3, end: left(0.5), dropsAt: 1 },
  ],
];

/**
 * Writes the folder of a finished run: eight attempts at four tasks, one of them in two segments,
 * one failed, one with a dropped stop, one with a trouble, one truncated after the environment's
 * answer.
 */
export async function writeSoundRun(
  dir: string,
  { attempt = { span: [0, 11], tokenSpan: [0, 3] } }: { readonly attempt?: AttemptSpans } = {},
): Promise<void> {
  const attempts = stories.flatMap((group, taskIndex) =>
    group.map((story, sampleIndex) => ({
      episode: toEpisode(story, { taskIndex, sampleIndex, attempt }),
      groupIndex: taskIndex,
      index: taskIndex * sampleCount + sampleIndex,
    })),
  );
  const tally = new RunTally({ planned: attempts.length, now: () => 0 });
  await using folder = await RunFolder.open(dir, manifest, { format: "slime", retryFailed: false });
  await folder.writeEvent({ type: "run-started", atMs: 0, manifest });
  // They end in another order than that of the plan.
  for (const { episode } of attempts.toReversed()) {
    tally.episodeStarted();
    const episodeHash = await folder.writeEpisode(episode);
    tally.episodeFinished(episode);
    const { rolloutId, outcome, stopReason, reward } = episode;
    const event = { rolloutId, outcome, stopReason, ...(reward !== undefined && { reward }) };
    await folder.writeEvent({ type: "episode-finished", atMs: 1, ...event, episodeHash });
  }
  await folder.sortSamples(attempts.map(({ episode }) => episode.rolloutId));
  const slime = await folder.writeSlime(
    attempts.map(({ episode, groupIndex, index }) => ({
      rolloutId: episode.rolloutId,
      groupIndex,
      index,
    })),
  );
  await folder.writeEvent({ type: "run-ended", atMs: 2, end: "finished" });
  await folder.results.writeSummary({ end: "finished", ...tally.progress(), slime });
}

function toEpisode(
  story: Story,
  place: {
    readonly taskIndex: number;
    readonly sampleIndex: number;
    readonly attempt: AttemptSpans;
  },
): Episode {
  const { taskIndex, sampleIndex, attempt } = place;
  const recorder = new TrajectoryRecorder();
  const turns: TurnRecord[] = [];
  recorder.openSegment([...promptIds, taskIndex + 10]);
  for (let turnIndex = 0; turnIndex < story.turnCount; turnIndex++) {
    if (story.splitAt === turnIndex) recorder.openSegment([...promptIds, taskIndex + 10, 50]);
    const promptTokenCount = recorder.length;
    const first = 100 + 10 * turnIndex + sampleIndex;
    recorder.appendTurn({
      outputIds: [first, first + 1, first + 2, stopId],
      logprobs: [-0.5, -0.25, -1 / (taskIndex + 3), -0.125],
      finish: { type: "stop", matched: stopId },
      pieces: [{ requestId: "r", tokenCount: 4, policyVersion: "7", finish: "stop" }],
      discarded: [],
    });
    turns.push(toTurn(turnIndex, promptTokenCount, attempt));
    const isAnswered = turnIndex + 1 < story.turnCount || story.end.outcome !== "completed";
    const isRewritten = story.splitAt === turnIndex + 1;
    if (!isAnswered || isRewritten) continue;
    const dropped = story.dropsAt === turnIndex ? { droppedStopId: stopId } : {};
    recorder.appendDelta({ ids: [60, 61], text: "", closeSynthesised: false, ...dropped });
  }
  const segments = recorder.toSegments();
  return {
    ...episodeStory(taskIndex, sampleIndex),
    ...story.end,
    ...(story.troubles && { troubles: story.troubles }),
    turns,
    counts: countEpisode(turns, segments, 0),
    segments,
  };
}

function episodeStory(taskIndex: number, sampleIndex: number) {
  const { sampleHashes: _, ...story } = episodeRow({
    taskIndex,
    sampleIndex,
    seed: 40 + taskIndex * sampleCount + sampleIndex,
    messages: [
      { role: "system", content: "Sell lamps." },
      { role: "user", content: `I want lamp ${taskIndex}.` },
      { role: "assistant", content: "Here it is." },
    ],
  });
  return story;
}

function toTurn(turnIndex: number, promptTokenCount: number, attempt: AttemptSpans): TurnRecord {
  return {
    turnIndex,
    text: "[sell lamp]",
    finish: "stop",
    sampledTokenCount: 4,
    promptTokenCount,
    attemptCounts: { ok: 1 },
    attempts: [{ status: "ok", name: "sell", ...attempt }],
    format: { formatOk: true, leakedMarkup: false, thinkingMalformed: false },
    steps: [{ source: "sell", callId: `c${turnIndex}`, observation: "sold", result: "acted" }],
    engineMs: 1,
    environmentMs: 1,
  };
}
