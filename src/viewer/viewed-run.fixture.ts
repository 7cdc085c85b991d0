import { appendFile, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { TurnRecord } from "../episode/episode.ts";
import { storeStory } from "../episode/stored-story.ts";
import { writeGeneration } from "../run/recording/written-generation.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import type { Sample } from "../trajectory/sample.ts";
import type { TurnSpan } from "../trajectory/segment.ts";

/** The model folder whose tokenizer the runs of these tests use. */
export const viewedModel = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

/** Ids that end a turn there. */
const stopIds = [2939, 2937];

/** A stretch of a row that is to be made: text that is encoded, and who wrote it. */
export interface RowPart {
  readonly text: string;
  /** The version of the policy, for sampled tokens. */
  readonly version?: string;
  readonly finish?: "stop" | "length";
  readonly droppedStopId?: number;
}

/** An episode of a run that is to be looked at. */
export interface ViewedEpisode {
  readonly row: EpisodeRow;
  readonly samples: readonly Sample[];
}

/** Logprobs that are different at each position. */
export function logprobAt(index: number): number {
  return index % 5 === 0 ? -5.25 - index / 1000 : -0.001 * (1 + (index % 700));
}

/** Makes a training row: the first part is the prompt, those with a version were sampled. */
export async function makeSample(
  codec: TokenCodec,
  rolloutId: string,
  parts: readonly RowPart[],
): Promise<Sample> {
  const ids: number[] = [];
  const policyVersions: string[] = [];
  const turns: TurnSpan[] = [];
  let promptLength = 0;
  for (const { text, version, finish = "stop", droppedStopId } of parts) {
    const own = await codec.encode(text);
    const start = ids.length;
    for (const id of own) ids.push(id);
    for (let count = 0; count < own.length; count++) policyVersions.push(version ?? "");
    if (promptLength === 0) promptLength = ids.length;
    if (version === undefined) continue;
    turns.push({
      turnIndex: turns.length,
      start,
      end: ids.length,
      finish,
      promptHash: "",
      outputHash: "",
      ...(droppedStopId !== undefined && { droppedStopId, droppedStopLogprob: -1 }),
    });
  }
  const isSampled = (index: number): boolean =>
    turns.some(({ start, end }) => index >= start && index < end);
  const groupId = rolloutId.replace(/#\d+$/, "");
  return {
    format: 1,
    rolloutId,
    groupId,
    taskId: groupId,
    segment: 0,
    tokenIds: ids,
    promptLength,
    lossMask: ids.map((_, index) => (isSampled(index) ? 1 : 0)),
    logprobs: ids.map((_, index) => (isSampled(index) ? logprobAt(index) : 0)),
    policyVersions,
    turns,
    reward: 0,
    outcome: "completed",
    stopReason: "user-left",
    metadata: {},
  };
}

/** Makes the line of an episode, around its turns. */
export function makeEpisode(
  rolloutId: string,
  turns: readonly Partial<TurnRecord>[],
  more: Partial<EpisodeRow> = {},
): EpisodeRow {
  const groupId = rolloutId.replace(/#\d+$/, "");
  const [, task = "0", sample = "0"] = /(\d+)#(\d+)$/.exec(rolloutId) ?? [];
  return {
    format: 1,
    rolloutId,
    groupId,
    taskId: groupId,
    environment: "shop",
    split: "test",
    taskIndex: Number(task),
    sampleIndex: Number(sample),
    seed: 5,
    attempt: 1,
    outcome: "completed",
    stopReason: "user-left",
    reward: 0,
    counts: {
      turnCount: turns.length,
      sampledTokenCount: 20,
      tokenCount: 100,
      toolCallCount: 1,
      formatErrorCount: 0,
      attemptCounts: {},
    },
    userUsage: { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 },
    startedAtMs: 1_000,
    durationMs: 2_500,
    ...more,
    messages: more.messages ?? [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Cancel my order." },
    ],
    turns: turns.map((turn, turnIndex) => ({
      turnIndex,
      text: "",
      finish: "stop",
      sampledTokenCount: 4,
      promptTokenCount: 9,
      attemptCounts: {},
      steps: [],
      engineMs: 20,
      environmentMs: 5,
      ...turn,
    })),
    sampleHashes: [],
  };
}

/** Writes a run's folder as a run leaves it. */
export async function writeViewedRun(
  dir: string,
  episodes: readonly ViewedEpisode[],
  { planned = episodes.length, isFinished = true, model = viewedModel } = {},
): Promise<void> {
  await mkdir(dir, { recursive: true });
  const manifest: RunManifest = {
    format: 1,
    turnwright: "0.1.0",
    configuration: { env: "shop", split: "test" },
    found: {
      engine: { kind: "reference", model },
      template: { stopIds },
      plan: { taskIndexes: Array.from({ length: planned }, (_, index) => index), sampleCount: 1 },
      settings: { engine: "reference", model },
    },
  };
  await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
  await writeFile(path.join(dir, "episodes.jsonl"), "");
  await writeFile(path.join(dir, "samples.jsonl"), "");
  for (const episode of episodes) await appendEpisode(dir, episode);
  if (isFinished) {
    await writeFile(path.join(dir, "summary.json"), JSON.stringify({ end: "finished" }));
  }
}

/** Appends an episode as a run does: its rows before its line. */
export async function appendEpisode(dir: string, { row, samples }: ViewedEpisode): Promise<void> {
  for (const sample of samples) {
    await appendFile(path.join(dir, "samples.jsonl"), `${JSON.stringify(sample)}\n`);
  }
  await appendFile(path.join(dir, "episodes.jsonl"), `${JSON.stringify(storeStory(row))}\n`);
}

/** Appends the policy's tokens of one turn to the recording of a running episode. */
export async function appendSampled(
  dir: string,
  rolloutId: string,
  turn: { readonly ids: readonly number[]; readonly version: string; readonly answer: string },
): Promise<void> {
  const { ids, version, answer } = turn;
  const place = { rolloutId, attempt: 1 };
  const value = writeGeneration({
    outputIds: ids,
    logprobs: ids.map((_, index) => logprobAt(index)),
    finish: { type: "stop" },
    pieces: [{ requestId: "r", tokenCount: ids.length, policyVersion: version, finish: "stop" }],
    discarded: [],
  });
  const inputs = [
    { type: "generation", promptHash: "0", outcome: { value } },
    { type: "outside", index: 0, what: "look", outcome: { value: answer } },
    { type: "answer", what: "step", outcome: { hash: "0" } },
  ];
  const line = { recording: 1, type: "inputs", ...place, part: 0, hash: "0", times: [], inputs };
  await appendFile(path.join(dir, "recording.jsonl"), `${JSON.stringify(line)}\n`);
}

/** Begins or ends the recording of an episode. */
export async function markRecording(
  dir: string,
  rolloutId: string,
  type: "begin" | "end",
): Promise<void> {
  const line = { recording: 1, type, rolloutId, attempt: 1 };
  await appendFile(path.join(dir, "recording.jsonl"), `${JSON.stringify(line)}\n`);
}
