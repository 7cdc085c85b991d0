import type { Environment } from "../environment/environment.ts";
import type { EpisodeAssignment } from "../episode/episode-setup.ts";
import { UsageError } from "../errors.ts";

/** One attempt of a run, with its place in the whole. */
export interface PlannedEpisode extends EpisodeAssignment {
  /** 0-based over the run's tasks. */
  readonly groupIndex: number;
  /** 0-based over all episodes of the run. */
  readonly index: number;
}

/** Which tasks are played, and how often each. */
export interface RunScope {
  readonly split: string;
  /** 0-based, in the order in which they are played. */
  readonly taskIndexes: readonly number[];
  /** Attempts per task: the group's size. */
  readonly sampleCount: number;
  readonly seed: number;
}

/** What `run.json` says of the plan: enough to tell which episodes there will be. JSON-able. */
export interface PlanRecord extends RunScope {
  /** The environment's name. */
  readonly environment: string;
}

/**
 * Every attempt of a run, task by task, so that the attempts of a group share the engine's prefix
 * cache.
 *
 * @throws UsageError for an unknown split or a task index out of range.
 */
export function planRun(environment: Environment, scope: RunScope): readonly PlannedEpisode[] {
  const { split, taskIndexes, sampleCount, seed } = scope;
  return taskIndexes.flatMap((taskIndex, groupIndex) => {
    const task = environment.task(split, taskIndex);
    return Array.from({ length: sampleCount }, (_, sampleIndex) => ({
      task,
      rolloutId: `${task.id}#${sampleIndex}`,
      groupId: task.id,
      sampleIndex,
      groupIndex,
      index: groupIndex * sampleCount + sampleIndex,
      seed: seed + groupIndex * sampleCount + sampleIndex,
    }));
  });
}

/**
 * Reads task indexes as the command line spells them: `all`, or numbers and rising ranges such as
 * `0-31,40`. Repeats are kept once.
 *
 * @throws UsageError that names the part that cannot be read or is out of range.
 */
export function parseTaskIndexes(
  text: string,
  { split, size }: { split: string; size: number },
): readonly number[] {
  if (text === "all") return Array.from({ length: size }, (_, index) => index);
  const indexes = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (match === null) {
      throw new UsageError(
        `Cannot read tasks "${text}": "${part}" is neither a number nor a range such as 0-31, nor "all"`,
      );
    }
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    if (last < first) {
      throw new UsageError(`Cannot read tasks "${text}": the range ${part.trim()} does not rise`);
    }
    if (last >= size) {
      throw new UsageError(
        `Cannot play task ${last}: split "${split}" has ${size} tasks, expected 0 to ${size - 1}`,
      );
    }
    for (let index = first; index <= last; index++) indexes.add(index);
  }
  return [...indexes];
}
