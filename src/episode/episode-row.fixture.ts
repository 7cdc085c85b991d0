import type { EpisodeRow } from "../run/folder/run-folder.ts";

/** An episode's line with the given fields; the others are those of a plain one that completed. */
export function episodeRow(
  fields: Partial<EpisodeRow> & { readonly taskIndex: number; readonly sampleIndex: number },
): EpisodeRow {
  const environment = fields.environment ?? "shop";
  const split = fields.split ?? "test";
  const taskId = `${environment}/${split}/${fields.taskIndex}`;
  return {
    format: 1,
    rolloutId: `${taskId}#${fields.sampleIndex}`,
    groupId: taskId,
    taskId,
    environment,
    split,
    seed: 0,
    attempt: 1,
    outcome: "completed",
    stopReason: "user-left",
    counts: {
      turnCount: 2,
      sampledTokenCount: 20,
      tokenCount: 100,
      toolCallCount: 1,
      formatErrorCount: 0,
      attemptCounts: {},
    },
    userUsage: { callCount: 2, inputTokenCount: 30, outputTokenCount: 3 },
    startedAtMs: 1_000,
    durationMs: 500,
    messages: [],
    turns: [],
    sampleHashes: [],
    ...fields,
  };
}
