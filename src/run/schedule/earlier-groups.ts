import type { Episode } from "../../episode/episode.ts";
import type { Task } from "../../task.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { eventsFile } from "../folder/episode-events.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import { requireSameGroup } from "../folder/same-groups.ts";
import type { RecordedGroups } from "../folder/started-groups.ts";
import { fromTaskRecord, redrawTask, type TaskRecord } from "../folder/task-record.ts";
import type { PolicyControl } from "../policy/policy-control.ts";
import { describeLostTask } from "../recording/recording-line.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import type { GroupDelivery } from "./group-delivery.ts";
import type { GroupLedger } from "./group-ledger.ts";
import type { JobScheduler } from "./job-scheduler.ts";
import type { CompletedGroup, OpenGroup } from "./open-group.ts";

interface EarlierGroupsOptions extends Pick<
  StartRunOptions,
  "folder" | "redeliver" | "setup" | "source" | "staleness"
> {
  readonly ledger: GroupLedger;
  readonly delivery: GroupDelivery;
  readonly scheduler: JobScheduler;
  readonly policy: PolicyControl;
  /** Called when all groups that earlier starts left open are known. */
  readonly onReopened: () => void;
}

/** Resumes the groups that earlier starts left open, and delivers complete ones that were not taken. */
export class EarlierGroups {
  readonly #options: EarlierGroupsOptions;

  constructor(options: EarlierGroupsOptions) {
    this.#options = options;
  }

  /**
   * Resumes and delivers groups of earlier starts.
   *
   * @throws UsageError if the source or the environment does not return a needed task again.
   */
  async resume(): Promise<void> {
    const { delivery, folder, ledger, onReopened, redeliver = false } = this.#options;
    const { setup, source } = this.#options;
    const { repeatable = false } = source;
    if (folder === undefined) return;
    if (repeatable && !redeliver) {
      await this.#compareWithSource(folder, new Set());
      return;
    }
    const recorded = await folder.readGroups();
    this.#warnOfLostEvents(recorded);
    const recall = (record: TaskRecord): Task => fromTaskRecord(record, setup.environment);
    const untaken = redeliver ? this.#untaken(recorded) : [];
    const tasks = recalledTasks(untaken, recorded, recall);
    const ids = untaken.flatMap(({ rows }) => rows.map(({ rolloutId }) => rolloutId));
    const found = await folder.readEpisodes(new Set(ids));
    const episodesOf = this.#byGroup(untaken, found);
    for (const [groupIndex, episodes] of episodesOf) {
      const task = tasks.get(groupIndex) ?? (await this.#taskOf(episodes[0]!, folder));
      if (task !== undefined) tasks.set(groupIndex, task);
    }
    // The source is asked again for these. One with onGroupEnd() may give tasks only after others have ended.
    const isAsked = (groupIndex: number): boolean =>
      source.onGroupEnd === undefined || !tasks.has(groupIndex);
    const asked = new Set([...episodesOf.keys()].filter(isAsked));
    if (repeatable && redeliver) this.#warnOfWaits(asked.size, recorded.taken);
    if (repeatable) await this.#compareWithSource(folder, asked);
    else delivery.offeredCount += await ledger.reopen(recorded.started, recall);
    onReopened();
    if (redeliver) await this.#redeliver(recorded, { found, episodesOf, tasks });
  }

  /** Returns the complete groups that were neither taken nor left out. */
  #untaken({ taken, leftOut }: RecordedGroups): readonly CompletedGroup[] {
    return this.#options.ledger.completedBefore.filter(
      ({ groupIndex }) => !taken.has(groupIndex) && !leftOut.has(groupIndex),
    );
  }

  async #redeliver(
    { finished, taken }: RecordedGroups,
    {
      found,
      episodesOf,
      tasks,
    }: {
      readonly found: readonly Episode[];
      readonly episodesOf: ReadonlyMap<number, readonly Episode[]>;
      readonly tasks: ReadonlyMap<number, Task>;
    },
  ): Promise<void> {
    const { delivery, policy, scheduler, staleness } = this.#options;
    delivery.takenBefore = taken;
    await policy.recall(found, staleness !== undefined);
    for (const [groupIndex, episodes] of episodesOf) {
      const known = tasks.get(groupIndex);
      const sourced = known === undefined ? await scheduler.askAgain(groupIndex) : undefined;
      const task = known ?? sourced?.task;
      // The run was stopped. The next start delivers the rest.
      if (task === undefined) return;
      if (sourced !== undefined) {
        const { groupId = sourced.task.id } = sourced;
        requireSameGroup(groupId, { groupIndex, earlier: episodes });
      }
      const ordered = bySampleIndex(episodes);
      delivery.offeredCount += 1;
      const group = { groupId: ordered[0]!.groupId, groupIndex, task, episodes: ordered };
      if (finished.has(groupIndex)) delivery.add(group);
      // The earlier start stopped before the group's end was recorded.
      else await delivery.conclude(group);
    }
  }

  /** Warns if lines of `events.jsonl` are missing, because no other file has their content. */
  #warnOfLostEvents({ damagedCount, isAnyStart }: RecordedGroups): void {
    const isGone = !isAnyStart && this.#options.ledger.finishedBefore.length > 0;
    if (!isGone && damagedCount === 0) return;
    const problem = isGone
      ? "records no start of this run, for example because it was deleted or emptied"
      : `has lines that cannot be read (${damagedCount})`;
    process.emitWarning(
      `The run's ${eventsFile} ${problem}: groups that were taken may be delivered again, and groups whose tasks the ` +
        "source does not give again are not resumed",
    );
  }

  /** Warns if the source may wait for groups to end that `onGroupEnd()` does not report again. */
  #warnOfWaits(askedCount: number, taken: ReadonlySet<number>): void {
    const { ledger, source } = this.#options;
    if (source.onGroupEnd === undefined) return;
    if (askedCount > 0) {
      process.emitWarning(
        `The source of tasks is asked once more for groups that have ended (${askedCount}), before any group is played: ` +
          "their recordings do not hold their tasks. A source that gives no other groups until onGroupEnd() reports " +
          "groups that end waits for ever; record everything (--record all), or start without redeliver",
      );
    }
    const openCount = [...taken].filter((groupIndex) => !ledger.hasEnded(groupIndex)).length;
    if (openCount > 0) {
      process.emitWarning(
        `The source of tasks is asked once more for groups that were taken (${openCount}), because attempts at them are ` +
          "played again, and onGroupEnd() does not report these groups a second time. A source that gives no other " +
          "groups before that waits for ever; start without redeliver, or do not play failed attempts again",
      );
    }
  }

  /**
   * Returns the task of a complete group without asking the source: a source that is not repeatable would give the task
   * of a later group, and a source with `onGroupEnd()` may wait for groups to end that are not played yet.
   *
   * @returns `undefined` if the source has to be asked.
   * @throws UsageError as `redrawTask()` does.
   */
  async #taskOf(episode: Episode, folder: RunFolder): Promise<Task | undefined> {
    const { setup, source } = this.#options;
    const { repeatable = false } = source;
    if (repeatable && source.onGroupEnd === undefined) return undefined;
    const { begin } = (await folder.recordings.read(episode.rolloutId)) ?? {};
    const lost = begin && describeLostTask(begin);
    if (repeatable && (begin === undefined || lost !== undefined)) return undefined;
    return redrawTask(episode, {
      environment: setup.environment,
      ...withoutUndefined({ recorded: begin?.ownTask?.task, lost }),
    });
  }

  /** Checks that a repeatable source gives the groups of earlier starts again (see `GroupLedger.compareWithSource()`). */
  async #compareWithSource(folder: RunFolder, asked: ReadonlySet<number>): Promise<void> {
    const { ledger, scheduler } = this.#options;
    const started = ledger.isAllFinished ? [] : await folder.recordings.readStarted();
    await scheduler.compareWithSource(started, asked);
  }

  /** Groups episodes by group index. Keeps of each group the episodes that completed it; more may have ended later. */
  #byGroup(
    groups: readonly CompletedGroup[],
    found: readonly Episode[],
  ): ReadonlyMap<number, readonly Episode[]> {
    const { ledger } = this.#options;
    const lists = groups.map(({ groupIndex }): [number, Episode[]] => [groupIndex, []]);
    const listOf = new Map<string, Episode[]>();
    for (const [place, { rows }] of groups.entries()) {
      for (const { rolloutId } of rows) listOf.set(rolloutId, lists[place]![1]);
    }
    for (const episode of found) listOf.get(episode.rolloutId)!.push(episode);
    return new Map(
      lists.map(([index, episodes]) => [index, ledger.completion.firstComplete(episodes)]),
    );
  }

  /** Adds the attempts of earlier starts to those with which this start completed a group. */
  async withEarlier(
    { earlier: rows }: OpenGroup,
    episodes: readonly Episode[],
  ): Promise<readonly Episode[]> {
    const { folder, ledger } = this.#options;
    if (rows.length === 0 || folder === undefined) return episodes;
    const earlier = await folder.readEpisodes(new Set(rows.map(({ rolloutId }) => rolloutId)));
    // The group was complete before lost attempts were restored: together they may be too many.
    const { completion } = ledger;
    if (completion.isComplete(earlier)) return bySampleIndex(completion.firstComplete(earlier));
    return bySampleIndex([...earlier, ...episodes]);
  }
}

/**
 * Returns the recorded tasks of groups, by group index. Throws before anything is played if one of
 * them no longer exists.
 */
function recalledTasks(
  groups: readonly CompletedGroup[],
  { started }: RecordedGroups,
  recall: (record: TaskRecord) => Task,
): Map<number, Task> {
  const wanted = new Set(groups.map(({ groupIndex }) => groupIndex));
  const records = started.filter(({ groupIndex }) => wanted.has(groupIndex));
  return new Map(records.map((record) => [record.groupIndex, recall(record)]));
}

function bySampleIndex(episodes: readonly Episode[]): readonly Episode[] {
  return episodes.toSorted((one, other) => one.sampleIndex - other.sampleIndex);
}
