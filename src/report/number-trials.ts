import { UsageError } from "../errors.ts";
import type { EpisodeRow } from "../run/episode-row.ts";
import type { StoredRun } from "./read-run.ts";

/** The number of each finished attempt among all attempts at its task, by its rollout's id. */
export type TrialNumbers = ReadonlyMap<string, number>;

/** A finished episode with its number among all attempts at its task. */
export interface NumberedEpisode {
  readonly row: EpisodeRow;
  /** 0-based. */
  readonly trial: number;
}

interface Attempt extends Pick<EpisodeRow, "rolloutId" | "sampleIndex"> {
  readonly groupIndex: number;
}

/**
 * Numbers a run's attempts, each task's by themselves: by its place in its group where a task has one group, else by
 * groups and places, from 0 without a gap. Only ids and numbers stay in mind.
 *
 * @throws UsageError where an attempt is there twice.
 */
export async function numberTrials(run: Pick<StoredRun, "dir" | "rows">): Promise<TrialNumbers> {
  const attempts = new Map<string, Attempt[]>();
  for await (const { taskId, rolloutId, sampleIndex, groupIndex = 0 } of run.rows()) {
    const attempt = { rolloutId, sampleIndex, groupIndex };
    const known = attempts.get(taskId);
    if (known === undefined) attempts.set(taskId, [attempt]);
    else known.push(attempt);
  }
  const trials = new Map<string, number>();
  for (const [taskId, ofTask] of attempts) {
    ofTask.sort((a, b) => a.groupIndex - b.groupIndex || a.sampleIndex - b.sampleIndex);
    refuseTwice(run.dir, taskId, ofTask);
    const isOneGroup = ofTask[0]?.groupIndex === ofTask.at(-1)?.groupIndex;
    for (const [place, { rolloutId, sampleIndex }] of ofTask.entries()) {
      trials.set(rolloutId, isOneGroup ? sampleIndex : place);
    }
  }
  return trials;
}

function refuseTwice(dir: string, taskId: string, sorted: readonly Attempt[]): void {
  for (const [place, { groupIndex, sampleIndex, rolloutId }] of sorted.entries()) {
    const before = sorted[place - 1];
    if (before?.groupIndex !== groupIndex || before.sampleIndex !== sampleIndex) continue;
    throw new UsageError(
      `Cannot number the attempts in ${dir}: ${before.rolloutId} and ${rolloutId} are both attempt ${sampleIndex} ` +
        `of group ${groupIndex} at ${taskId}, expected one; turnwright verify says what is wrong`,
    );
  }
}

/** The episodes that are numbered; one that ended since is left for the next time. */
export async function* numberedEpisodes(
  run: Pick<StoredRun, "rows">,
  trials: TrialNumbers,
): AsyncGenerator<NumberedEpisode> {
  for await (const row of run.rows()) {
    const trial = trials.get(row.rolloutId);
    if (trial !== undefined) yield { row, trial };
  }
}
