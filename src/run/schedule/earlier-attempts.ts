import { appendToList } from "../../../packages/python-values/src/support/append-to-list.ts";
import type { FinishedEpisode } from "../folder/episode-row.ts";
import {
  requireSameGroups,
  type EarlierGroup,
  type StartedAttempt,
} from "../folder/same-groups.ts";
import type { AskOptions } from "./ask-source.ts";
import type { GroupCompletion } from "./group-completion.ts";
import { groupIdOf } from "./group-id.ts";
import type { CompletedGroup } from "./open-group.ts";
import type { SourcedTask, TaskSource } from "./task-source.ts";

interface EarlierAttemptsOptions {
  readonly source: TaskSource;
  readonly completion: GroupCompletion;
  /** The number of attempts that are started at each task. */
  readonly started: number;
  readonly finished: readonly FinishedEpisode[];
  /** Rollouts that ended in earlier starts, but lost their lines. */
  readonly lost: Iterable<string>;
}

/** The attempts that earlier starts finished or started, by group. A group is removed when this start passes it. */
export class EarlierAttempts {
  /** All finished attempts, also those of groups that the source does not give any more. */
  readonly finished: readonly FinishedEpisode[];
  readonly #source: TaskSource;
  readonly #completion: GroupCompletion;
  readonly #byGroup = new Map<number, FinishedEpisode[]>();
  /** Lost rollouts by group id. */
  readonly #lost = new Map<string, string[]>();
  /** Unfinished attempts of a repeatable source, by group index. */
  readonly #started = new Map<number, StartedAttempt[]>();
  /** Tasks that a repeatable source gave in `compareWithSource()`, until they are used. */
  readonly #given = new Map<number, SourcedTask | undefined>();

  constructor({ source, completion, started, finished, lost }: EarlierAttemptsOptions) {
    this.#source = source;
    this.#completion = completion;
    for (const rolloutId of lost) {
      const groupId = groupIdOf(rolloutId);
      // This start plays no attempt with a higher index, so nothing can restore it.
      if (!(Number(rolloutId.slice(groupId.length + 1)) < started)) continue;
      appendToList(this.#lost, groupId, rolloutId);
    }
    const known: FinishedEpisode[] = [];
    for (const row of finished) {
      if (row.groupIndex === undefined || row.sampleIndex >= started) continue;
      known.push(row);
      appendToList(this.#byGroup, row.groupIndex, row);
    }
    this.finished = known;
  }

  /** The indexes of groups with finished attempts that this start has not passed. */
  groupIndexes(): Iterable<number> {
    return this.#byGroup.keys();
  }

  finishedIn(groupIndex: number): readonly FinishedEpisode[] {
    return this.#byGroup.get(groupIndex) ?? [];
  }

  startedIn(groupIndex: number): readonly StartedAttempt[] {
    return this.#started.get(groupIndex) ?? [];
  }

  lostIn(groupId: string): readonly string[] {
    return this.#lost.get(groupId) ?? [];
  }

  /** True if earlier starts completed the group, and none of its attempts is lost. */
  isComplete(groupIndex: number): boolean {
    return this.areComplete(this.finishedIn(groupIndex));
  }

  /** True if these attempts complete their group, and none of its attempts is lost. */
  areComplete(rows: readonly FinishedEpisode[]): boolean {
    const [first] = rows;
    if (first !== undefined && this.#lost.has(groupIdOf(first.rolloutId))) return false;
    return this.#completion.isComplete(rows);
  }

  /** The groups that earlier starts completed, by index, without those that a repeatable source does not give any more. */
  get completed(): readonly CompletedGroup[] {
    const { length = Infinity, repeatable = false } = this.#source;
    return [...this.#byGroup]
      .filter(
        ([groupIndex, rows]) => this.areComplete(rows) && !(repeatable && groupIndex >= length),
      )
      .map(([groupIndex, rows]) => ({ groupIndex, rows }))
      .toSorted((one, other) => one.groupIndex - other.groupIndex);
  }

  /** Removes the finished attempts of a group. */
  removeFinished(groupIndex: number): void {
    this.#byGroup.delete(groupIndex);
  }

  /** Removes all that is known about a group. */
  remove(groupIndex: number): void {
    this.removeFinished(groupIndex);
    this.#started.delete(groupIndex);
    this.#given.delete(groupIndex);
  }

  /**
   * Removes and returns the task that the source gave for a group in advance; `undefined` if the group was not
   * requested.
   */
  takeGiven(groupIndex: number): { readonly task: SourcedTask | undefined } | undefined {
    const task = this.#given.get(groupIndex);
    return this.#given.delete(groupIndex) ? { task } : undefined;
  }

  /**
   * Checks that a repeatable source gives the groups of earlier starts again, before this start changes anything. Asks
   * for groups in order, because a source may only read forward, and keeps the tasks that are needed later.
   *
   * A source with `onGroupEnd()` may give no group before others have ended. No group after the first unfinished one is
   * requested from it; later groups are checked when they start.
   *
   * @param started - Unfinished attempts, as far as they were recorded.
   * @param wanted - Indexes of complete groups whose tasks are needed too.
   * @throws UsageError as `requireSameGroups()` does.
   */
  async compareWithSource(
    started: readonly StartedAttempt[],
    wanted: ReadonlySet<number>,
    options: AskOptions,
  ): Promise<void> {
    const source = this.#source;
    if (source.repeatable !== true) return;
    for (const attempt of started) appendToList(this.#started, attempt.groupIndex, attempt);
    const isNeeded = ({ groupIndex, earlier }: EarlierGroup): boolean =>
      wanted.has(groupIndex) || !this.areComplete(earlier);
    let groups = this.#allIndexes().map((groupIndex) => ({
      groupIndex,
      earlier: this.finishedIn(groupIndex),
      started: this.startedIn(groupIndex),
    }));
    if (source.onGroupEnd !== undefined) {
      let first = 0;
      while (this.isComplete(first)) first += 1;
      groups = groups.filter((group) => group.groupIndex <= first && isNeeded(group));
    }
    const given = await requireSameGroups(groups, { ...options, source, isNeeded });
    for (const [groupIndex, task] of given) this.#given.set(groupIndex, task);
  }

  /** Returns all indexes up to the last group with a finished or started attempt. */
  #allIndexes(): readonly number[] {
    const indexes = [...this.#byGroup.keys(), ...this.#started.keys()];
    const count = indexes.reduce((most, index) => Math.max(most, index + 1), 0);
    return Array.from({ length: count }, (_, index) => index);
  }
}
