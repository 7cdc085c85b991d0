import { collectResults, type RunResults } from "../../../report/collect-results.ts";
import { estimatePasses, type PassEstimates } from "../../../report/statistics/estimate-passes.ts";
import { boundsOf, estimateMean, type Estimate } from "../../../report/statistics/interval.ts";
import { isSuccessful } from "../../../report/trial-result.ts";
import type { EpisodeEntry, RunFacts } from "../episode-entry.ts";
import { mean } from "../../../values/sum.ts";

/** Figures of a run, as `turnwright report` computes them. Branches of other attempts are left out. JSON-able. */
export interface RunFigures {
  /** The distinct environments and splits of the episodes. */
  readonly scopes: readonly string[];
  readonly taskCount: number;
  /** The largest number of scored attempts at a task. */
  readonly attemptCount: number;
  readonly scoredCount: number;
  /** The mean over tasks of the mean over each task's scored attempts. Absent if no attempt is scored. */
  readonly averageReward?: Estimate;
  /** pass^k by k. */
  readonly passHatK: PassEstimates;
  readonly passAtK: PassEstimates;
  /** The same mean of each component of the reward, by its name. */
  readonly components: Readonly<Record<string, Estimate>>;
}

/** A run in a list of runs. JSON-able. */
export interface RunOverview {
  readonly facts: RunFacts;
  /** The start of the first episode, in milliseconds since the epoch. Absent if the run has no episode. */
  readonly startedAtMs?: number;
  readonly figures: RunFigures;
}

/** The largest number of attempts for which pass^k is computed for each k up to this number. */
const maxAttempts = 32;

/** Returns a run with its figures, for a list of runs. */
export function overviewOf(facts: RunFacts, entries: readonly EpisodeEntry[]): RunOverview {
  const startedAtMs = entries.reduce(
    (first, entry) => Math.min(first, entry.startedAtMs),
    Infinity,
  );
  return {
    facts,
    ...(entries.length > 0 && { startedAtMs }),
    figures: figuresOf(entries),
  };
}

/** Computes the figures of a run's episodes. */
export function figuresOf(entries: readonly EpisodeEntry[]): RunFigures {
  const { tasks, scopes } = collectResults("", entries);
  const successes = entries.map((entry) =>
    entry.reward === undefined ? entry : { ...entry, reward: Number(isSuccessful(entry)) },
  );
  const scored = [...collectResults("", successes).tasks.values()].map(({ rewards }) => ({
    successCount: rewards.filter((reward) => reward === 1).length,
    scoredCount: rewards.length,
  }));
  const attemptCount = scored.reduce((most, task) => Math.max(most, task.scoredCount), 0);
  const averageReward = meanOverTasks(tasks);
  return {
    scopes,
    taskCount: tasks.size,
    attemptCount,
    scoredCount: scored.reduce((sum, task) => sum + task.scoredCount, 0),
    ...(averageReward !== undefined && { averageReward }),
    ...estimatePasses(scored, shownKs(attemptCount)),
    components: Object.fromEntries(
      componentNames(entries).flatMap((name) => {
        const values = entries.map(({ components, reward: _reward, ...entry }) => {
          const value = components?.[name];
          return { ...entry, ...(value !== undefined && { reward: value }) };
        });
        const mean = meanOverTasks(collectResults("", values).tasks);
        return mean === undefined ? [] : [[name, mean]];
      }),
    ),
  };
}

/** Returns the names of the reward's components, in the order in which they appear. */
export function componentNames(entries: readonly EpisodeEntry[]): readonly string[] {
  return [...new Set(entries.flatMap(({ components = {} }) => Object.keys(components)))];
}

/** Returns the heading of a component: its name, or `reward.NAME` beside another heading of this name. */
export function componentTitle(name: string, others: readonly string[]): string {
  return others.includes(name) ? `reward.${name}` : name;
}

/** Returns the k whose pass^k is shown: all up to `maxAttempts`, then powers of two and the last. */
function shownKs(attemptCount: number): readonly number[] {
  const few = Array.from({ length: Math.min(attemptCount, maxAttempts) }, (_, index) => index + 1);
  const ks = [...few];
  for (let k = 2 * maxAttempts; k < attemptCount; k *= 2) ks.push(k);
  return attemptCount > maxAttempts ? [...ks, attemptCount] : ks;
}

function meanOverTasks(tasks: RunResults["tasks"]): Estimate | undefined {
  const scored = [...tasks.values()].filter(({ rewards }) => rewards.length > 0);
  return estimateMean(
    scored.map(({ rewards }) => mean(rewards)),
    boundsOf(scored.flatMap(({ rewards }) => rewards)),
  );
}
