import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { withoutBytes } from "../../columns/column-part.ts";
import type { ColumnParts, ColumnSpecs } from "../../columns/index.ts";
import { countEpisode } from "../../episode/count-episode.ts";
import { episodeRow } from "../../episode/episode-row.fixture.ts";
import type { Episode, TurnRecord } from "../../episode/episode.ts";
import { RunFolder, type RunManifest } from "../../run/folder/run-folder.ts";
import { RunTally } from "../../run/run-progress.ts";
import type { RolloutEnd, Sample } from "../../trajectory/sample.ts";
import { TrajectoryRecorder } from "../../trajectory/trajectory-recorder.ts";
import { columnTruth, inventColumns, type ColumnTruth } from "./invented-columns.fixture.ts";

const sampleCount = 2;
const taskIndexes = [0, 1, 2, 3, 4, 5, 6];

/** A row: its prompt, and the number of sampled tokens of each turn. */
interface Row {
  readonly prompt: readonly number[];
  readonly turns: readonly number[];
  /** True if ids of the environment follow the last turn. */
  readonly hasTail?: true;
  /** The turn within which the policy's version goes from 3 to 4. */
  readonly updatedAt?: number;
}

interface Story {
  readonly end: RolloutEnd;
  readonly rows: readonly Row[];
}

const left = (reward: number): RolloutEnd => ({
  outcome: "completed",
  stopReason: "user-left",
  reward,
});
const maxTurns: RolloutEnd = { outcome: "truncated", stopReason: "max-turns", reward: 0 };
const interrupted: RolloutEnd = { outcome: "aborted", stopReason: "interrupted" };
const contextFull: RolloutEnd = { outcome: "truncated", stopReason: "context-full", reward: 0 };

/** By task, the stories of its attempts. Ids of sampled tokens count from 100 in each attempt. */
const stories: readonly (readonly Story[])[] = [
  // Plain.
  [
    { end: left(1), rows: [{ prompt: [1, 2, 10], turns: [4, 2, 3] }] },
    { end: left(0), rows: [{ prompt: [1, 2, 10], turns: [3] }] },
  ],
  // Truncated: ids of the environment end the row.
  [
    { end: maxTurns, rows: [{ prompt: [1, 2, 11], turns: [3, 2], hasTail: true }] },
    { end: left(1), rows: [{ prompt: [1, 2, 11], turns: [5] }] },
  ],
  // An update of the weights within a turn.
  [
    { end: left(1), rows: [{ prompt: [1, 2, 12], turns: [2, 4, 3], updatedAt: 1 }] },
    { end: left(0), rows: [{ prompt: [1, 2, 12], turns: [2, 2] }] },
  ],
  // Several rows: a sub-agent, and a summary.
  [
    {
      end: left(0.5),
      rows: [
        { prompt: [1, 2, 13], turns: [3, 2] },
        { prompt: [5, 6, 7], turns: [4] },
        { prompt: [1, 2, 13, 8, 8], turns: [2, 3] },
      ],
    },
    { end: left(0), rows: [{ prompt: [1, 2, 13], turns: [2] }] },
  ],
  // A branch: the second row begins with the prompt and the first turn of the first row.
  [
    {
      end: left(1),
      rows: [
        { prompt: [1, 2, 14], turns: [3, 4] },
        { prompt: [1, 2, 14, 100, 101, 102, 70], turns: [2] },
      ],
    },
    { end: left(0), rows: [{ prompt: [1, 2, 14], turns: [4] }] },
  ],
  // Aborted.
  [
    { end: interrupted, rows: [{ prompt: [1, 2, 15], turns: [2] }] },
    { end: left(1), rows: [{ prompt: [1, 2, 15], turns: [3, 1] }] },
  ],
  // Without a sampled token.
  [
    { end: contextFull, rows: [{ prompt: [1, 2, 16], turns: [] }] },
    { end: left(1), rows: [{ prompt: [1, 2, 16], turns: [2] }] },
  ],
];

function manifestOf(columns: ColumnSpecs): RunManifest {
  return {
    format: 1,
    turnwright: "0.1.0",
    configuration: { env: "lamps", tasks: "0-6", samples: sampleCount },
    identity: { tokenizer: "t1", engine: "fake" },
    found: {
      engine: { kind: "fake", logprobConvention: "tempered", policyVersion: "3" },
      vocabularySize: 200,
      plan: { environment: "lamps", split: "train", taskIndexes, sampleCount, seed: 7 },
      settings: { temperature: 1 },
      columns,
    },
  };
}

/**
 * Writes the folder of a run with side columns: seven tasks of two attempts. They are plain, truncated, of several policy
 * versions, with several rows, branched, aborted and empty.
 *
 * @returns what the columns of each row contain, token by token.
 */
export async function writeColumnRun(
  dir: string,
  columns: ColumnSpecs,
): Promise<readonly ColumnTruth[]> {
  const manifest = manifestOf(columns);
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
    const event = { rolloutId, outcome, stopReason, ...(reward !== undefined && { reward }) };
    await folder.writeEvent({ type: "episode-finished", atMs: 1, ...event, episodeHash });
  }
  await folder.results.writeSummary({ end: "finished", ...tally.progress() });
  return await addColumns(dir, columns);
}

/** Writes invented columns into a run's folder, and their parts into its rows. */
async function addColumns(dir: string, specs: ColumnSpecs): Promise<readonly ColumnTruth[]> {
  const file = path.join(dir, "samples.jsonl");
  const samples = (await readFile(file, "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
  const written: (Sample & { readonly columns: ColumnParts })[] = [];
  for (const sample of samples) {
    const before = written.filter(({ rolloutId }) => rolloutId === sample.rolloutId);
    written.push({ ...sample, columns: inventColumns(sample, before, specs) });
  }
  await writeParts(
    dir,
    written.map((row) => row.columns),
  );
  const lines = written.map(({ columns, ...row }) => {
    const parts = Object.entries(columns).map(
      ([name, own]) => [name, own.map((part) => withoutBytes(part))] as const,
    );
    return `${JSON.stringify({ ...row, columns: Object.fromEntries(parts) })}\n`;
  });
  await writeFile(file, lines.join(""));
  return written.map((sample) => columnTruth(sample, specs));
}

async function writeParts(dir: string, rows: readonly ColumnParts[]): Promise<void> {
  const folder = path.join(dir, "columns");
  await mkdir(folder);
  const blocks: Uint8Array[] = [];
  const lines = new Map<string, string>();
  let at = 0;
  for (const part of rows.flatMap((columns) => Object.values(columns).flat())) {
    const { hash, size, bytes } = part;
    if (lines.has(hash)) continue;
    lines.set(hash, `${JSON.stringify({ hash, file: "0000.bin", at, size })}\n`);
    blocks.push(bytes!);
    at += size;
  }
  await writeFile(path.join(folder, "0000.bin"), Buffer.concat(blocks));
  await writeFile(path.join(folder, "0000.jsonl"), [...lines.values()].join(""));
}

function toEpisode({ end, rows }: Story, taskIndex: number, sampleIndex: number): Episode {
  const recorder = new TrajectoryRecorder();
  const turns: TurnRecord[] = [];
  let nextId = 100;
  for (const { prompt, turns: counts, hasTail, updatedAt = Infinity } of rows) {
    recorder.openSegment(prompt);
    for (const [index, count] of counts.entries()) {
      if (index > 0) recorder.appendDelta({ ids: [60, 61], text: "", closeSynthesised: false });
      turns.push(toTurn(turns.length, count, recorder.length));
      const piece = (tokenCount: number, version: number, finish: "abort" | "stop") => ({
        requestId: "r",
        tokenCount,
        policyVersion: String(version),
        finish,
      });
      recorder.appendTurn({
        outputIds: Array.from({ length: count }, () => nextId++),
        logprobs: Array.from({ length: count }, (_, place) => -0.125 * (place + 1)),
        finish: { type: "stop", matched: nextId - 1 },
        pieces:
          index === updatedAt
            ? [piece(2, 3, "abort"), piece(count - 2, 4, "stop")]
            : [piece(count, index > updatedAt ? 4 : 3, "stop")],
        discarded: [],
      });
    }
    if (hasTail) recorder.appendDelta({ ids: [60, 61], text: "", closeSynthesised: false });
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
