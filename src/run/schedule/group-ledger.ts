import { setMaxListeners } from "node:events";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment } from "../../episode/episode-setup.ts";
import { UsageError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { Task } from "../../task.ts";
import { askSource, type AskOptions } from "./ask-source.ts";
import type { AttemptCounts } from "./attempt-counts.ts";
import { EarlierAttempts } from "./earlier-attempts.ts";
import type { StartedGroup } from "../folder/started-groups.ts";
import type { FinishedEpisode } from "../folder/episode-row.ts";
import { isRecordedAs, taskRecordKey, type TaskRecord } from "../folder/task-record.ts";
import { requireSameGroup, type StartedAttempt } from "../folder/same-groups.ts";
import type { EpisodeGroup } from "./group.ts";
import { GroupCompletion } from "./group-completion.ts";
import { JobQueue } from "./job-queue.ts";
import type { AttemptJob, CompletedGroup, OpenGroup, StartedTask } from "./open-group.ts";
import { RolloutRegister } from "./rollout-register.ts";
import type { Fork, SourcedTask, TaskSource } from "./task-source.ts";

interface GroupLedgerOptions extends AttemptCounts {
  readonly source: TaskSource;
  readonly seed: number;
  readonly finished: readonly FinishedEpisode[];
  /** Rollouts that ended in earlier starts, but lost their lines. Default: none. */
  readonly lost?: Iterable<string>;
  /** True if the attempts of a group branch from its first one, and so wait for it. Default false. */
  readonly isBranching?: boolean;
}

/** Keeps track of a run's groups: the open ones, the next one, and those of earlier starts. */
export class GroupLedger {
  readonly queue: JobQueue;
  readonly completion: GroupCompletion;
  readonly #source: TaskSource;
  readonly #started: number;
  readonly #seed: number;
  readonly #earlier: EarlierAttempts;
  readonly #rollouts: RolloutRegister;
  /** The number of attempts with a group index at or above the source's length. An earlier start had a longer source. */
  #furtherCount = 0;
  /** Records of the tasks that earlier starts drew, by group id, until the source gives the groups again. */
  readonly #recordedBefore = new Map<string, string>();
  #nextGroup = 0;
  /** The first index, from `#nextGroup` on, of a group that earlier starts did not complete, as far as it was searched. */
  #nextIncomplete = 0;
  /** The first index before `#nextGroup` of a group that is neither complete nor open. */
  #firstSkipped = Infinity;
  #hasEnded = false;
  #openCount = 0;

  constructor(options: GroupLedgerOptions) {
    const { source, started, finished, isBranching = false, lost = [] } = options;
    this.#source = source;
    this.#started = started;
    this.#seed = options.seed;
    this.queue = new JobQueue({ isBranching });
    this.completion = new GroupCompletion(options);
    this.#rollouts = new RolloutRegister(started);
    this.#earlier = new EarlierAttempts({
      source,
      completion: this.completion,
      started,
      finished,
      lost,
    });
    const { length = Infinity } = source;
    for (const row of this.finishedBefore) {
      const groupIndex = row.groupIndex!;
      if (groupIndex >= length) this.#furtherCount += 1;
      this.#rollouts.add(groupIndex, row.sampleIndex, row.rolloutId);
      this.#rollouts.addEnd(row);
    }
  }

  /** Attempts that earlier starts finished, also those of groups that the source does not give any more. */
  get finishedBefore(): readonly FinishedEpisode[] {
    return this.#earlier.finished;
  }

  /** The groups that earlier starts completed (see `EarlierAttempts.completed`). */
  get completedBefore(): readonly CompletedGroup[] {
    return this.#earlier.completed;
  }

  /** The ids of started rollouts (see `RolloutRegister.ids`). */
  get rolloutIds(): readonly (string | undefined)[] {
    return this.#rollouts.ids;
  }

  /** Returns how a rollout ended; `undefined` if it did not end. */
  howEnded(rolloutId: string): "failed" | "other" | undefined {
    return this.#rollouts.howEnded(rolloutId);
  }

  /** The number of finished or resumed attempts of groups after the last one that the source gives now. */
  get furtherCount(): number {
    return this.#furtherCount;
  }

  /** The number of groups without a started attempt; 0 if the source does not know its length. */
  get unstartedCount(): number {
    const { length = 0 } = this.#source;
    if (this.#hasEnded) return 0;
    return Math.max(0, length - this.rolloutIds.length / this.#started);
  }

  /** True if all groups of the source are complete. Jobs of complete groups may be left in the queue. */
  get isAllFinished(): boolean {
    const { length } = this.#source;
    if (this.#openCount > 0) return false;
    if (this.#hasEnded) return true;
    return length !== undefined && this.#areCompleteUpTo(length);
  }

  /** False if `startNext()` would return `undefined`. True for a source without a length, which has to be asked. */
  get mayStart(): boolean {
    const { length = Infinity } = this.#source;
    if (this.#hasEnded || this.#nextGroup >= length) return false;
    // The search continues where it stopped: every worker reads this, and earlier starts may have completed 100,000 groups.
    let next = Math.max(this.#nextGroup, this.#nextIncomplete);
    while (next < length && this.#earlier.isComplete(next)) next += 1;
    this.#nextIncomplete = next;
    return next < length;
  }

  /**
   * True if the first `groupCount` groups are complete. Call it while no group is open. The source may have fewer groups,
   * and groups that it skipped may be incomplete.
   */
  areFinished(groupCount: number): boolean {
    return this.#firstSkipped >= groupCount && this.#areCompleteUpTo(groupCount);
  }

  /** True if earlier starts completed all groups from the next one up to `groupCount`. */
  #areCompleteUpTo(groupCount: number): boolean {
    for (let index = this.#nextGroup; index < groupCount; index++) {
      if (!this.#earlier.isComplete(index)) return false;
    }
    return true;
  }

  /** True if a group that this start has not passed needs no more attempts. */
  hasEnded(groupIndex: number): boolean {
    const { length = Infinity } = this.#source;
    return groupIndex >= length || this.#earlier.isComplete(groupIndex);
  }

  /**
   * Opens the incomplete groups of earlier starts, if the source may not give their tasks again. If the source gives
   * such a task again, `startNext()` skips it.
   *
   * @param recall - Makes a task from its record (see `fromTaskRecord()`). Only the tasks of incomplete groups are
   *   needed.
   * @returns the number of opened groups.
   */
  async reopen(
    groups: readonly StartedGroup[],
    recall: (record: TaskRecord) => Task,
  ): Promise<number> {
    let count = 0;
    const recorded = new Set<number>();
    // Attempts without a recorded group keep their index, too.
    for (const groupIndex of this.#earlier.groupIndexes()) {
      this.#nextGroup = Math.max(this.#nextGroup, groupIndex + 1);
    }
    for (const record of groups) {
      if (isTurnOver()) await takeTurn();
      const { groupIndex, groupId, fork } = record;
      recorded.add(groupIndex);
      this.#nextGroup = Math.max(this.#nextGroup, groupIndex + 1);
      this.#recordedBefore.set(groupId, taskRecordKey(record));
      const earlier = this.#earlier.finishedIn(groupIndex);
      this.#earlier.removeFinished(groupIndex);
      if (this.#earlier.areComplete(earlier)) continue;
      const task = recall(record);
      requireSameGroup(groupId, { groupIndex, earlier });
      this.release(this.#open({ groupIndex, groupId, task, earlier }, fork));
      count += 1;
    }
    let left = 0;
    while (recorded.has(left) || this.#earlier.isComplete(left)) left += 1;
    if (left < this.#nextGroup) this.#firstSkipped = left;
    return count;
  }

  /**
   * Draws the next group that is not complete. Its jobs can be taken after `release()`. The task has to be recorded
   * before that, so that a later start can resume the group.
   *
   * @returns `undefined` if there is no further group.
   * @throws UsageError if another group has its id, and as `askSource()` does.
   */
  async startNext(options: AskOptions): Promise<StartedTask | undefined> {
    const { length, repeatable = false } = this.#source;
    for (;;) {
      const groupIndex = this.#nextGroup;
      if (this.#hasEnded || (length !== undefined && groupIndex >= length)) return undefined;
      const earlier = this.#earlier.finishedIn(groupIndex);
      // `compareWithSource()` has checked that these attempts are of the group that the source gives here.
      if (repeatable && this.#earlier.areComplete(earlier)) {
        this.#pass(groupIndex);
        if (isTurnOver()) await takeTurn();
        continue;
      }
      const sourced = await this.ask(groupIndex, options);
      if (sourced === undefined) {
        this.#hasEnded = true;
        return undefined;
      }
      const { task, groupId = task.id, fork } = sourced;
      if (this.#wasRecorded(groupId, task)) {
        // The source may give a long list again.
        if (isTurnOver()) await takeTurn();
        continue;
      }
      const started = this.#earlier.startedIn(groupIndex);
      requireSameGroup(groupId, { groupIndex, earlier, started });
      this.#pass(groupIndex);
      const opened = this.#open({ groupIndex, groupId, task, earlier }, fork);
      return { ...opened, isRecorded: !repeatable, ...(fork && { fork }) };
    }
  }

  #pass(groupIndex: number): void {
    this.#nextGroup = groupIndex + 1;
    this.#earlier.remove(groupIndex);
  }

  /** Asks the source for a group, unless it gave the group in `compareWithSource()`. */
  async ask(groupIndex: number, options: AskOptions): Promise<SourcedTask | undefined> {
    const given = this.#earlier.takeGiven(groupIndex);
    return given ? given.task : await askSource(this.#source, groupIndex, options);
  }

  /** Checks that a repeatable source gives the groups of earlier starts again (see `EarlierAttempts`). */
  async compareWithSource(
    started: readonly StartedAttempt[],
    wanted: ReadonlySet<number>,
    options: AskOptions,
  ): Promise<void> {
    await this.#earlier.compareWithSource(started, wanted, options);
  }

  /**
   * True if an earlier start recorded this group, so that it is complete or already open. Each group is skipped only
   * once, so that a source which gives nothing else ends.
   */
  #wasRecorded(groupId: string, task: Task): boolean {
    const recorded = this.#recordedBefore.get(groupId);
    if (recorded === undefined) return false;
    this.#recordedBefore.delete(groupId);
    if (isRecordedAs(recorded, task)) return true;
    throw new UsageError(
      `Cannot play ${task.environment}: the source gives another task as ${groupId} than an earlier start ` +
        "began under that id; give it a `groupId` of its own, or choose another folder",
    );
  }

  /** Makes the jobs of a group available. */
  release(opened: Pick<StartedTask, "group" | "jobs">): void {
    this.queue.add(opened);
  }

  #open(
    place: Pick<OpenGroup, "groupIndex" | "groupId" | "task" | "earlier">,
    fork?: Fork,
  ): Pick<StartedTask, "group" | "jobs"> {
    const { groupIndex, groupId, task, earlier } = place;
    // The finished attempts of this group are counted already.
    if (groupIndex >= (this.#source.length ?? Infinity)) {
      this.#furtherCount += this.#started - earlier.length;
    }
    const group: OpenGroup = {
      ...place,
      started: this.#started,
      episodes: [],
      waiting: [],
      lost: new Set(this.#earlier.lostIn(groupId)),
      cancel: new AbortController(),
      isComplete: false,
    };
    // Each of the group's attempts listens to the signal.
    setMaxListeners(0, group.cancel.signal);
    const done = new Set(earlier.map(({ sampleIndex }) => sampleIndex));
    // A complete group is opened only for its lost attempts.
    const wanted = this.completion.isComplete(earlier) ? group.lost : undefined;
    const jobs: AttemptJob[] = [];
    for (let sampleIndex = 0; sampleIndex < this.#started; sampleIndex++) {
      if (done.has(sampleIndex)) continue;
      const rolloutId = `${groupId}#${sampleIndex}`;
      if (wanted?.has(rolloutId) === false) continue;
      if (this.#rollouts.has(rolloutId)) {
        throw new UsageError(
          `Cannot play ${task.environment}: task ${task.index} has the id of another one, ${groupId}`,
        );
      }
      this.#rollouts.add(groupIndex, sampleIndex, rolloutId);
      const seed = this.#seed + groupIndex * this.#started + sampleIndex;
      const identity = { task, rolloutId, groupId, groupIndex, sampleIndex };
      const assignment: EpisodeAssignment =
        fork === undefined
          ? { ...identity, seed }
          : { ...identity, seed: fork.seed, samplingSeed: seed, forkedFrom: fork.place };
      jobs.push({ group, assignment, ...(fork && { fork }) });
    }
    this.#openCount += 1;
    return { group, jobs };
  }

  /** Adds a finished attempt. Returns the group if this attempt completes it. */
  add(group: OpenGroup, episode: Episode): EpisodeGroup | undefined {
    this.#rollouts.addEnd(episode);
    this.queue.releaseWaiting(group);
    if (group.isComplete) return undefined;
    group.episodes.push(episode);
    group.lost.delete(episode.rolloutId);
    const { completion } = this;
    const ended = [...group.earlier, ...group.episodes];
    if (group.lost.size > 0 || !completion.isComplete(ended)) return undefined;
    group.isComplete = true;
    group.cancel.abort();
    this.#openCount -= 1;
    const { groupId, groupIndex, task } = group;
    const own = group.episodes.splice(0);
    // Restored attempts may make more than the group takes.
    const hadLost = this.#earlier.lostIn(groupId).length > 0;
    const chosen = hadLost ? new Set(completion.firstComplete(ended)) : undefined;
    const episodes = own
      .filter((one) => chosen?.has(one) ?? true)
      .toSorted((one, other) => one.sampleIndex - other.sampleIndex);
    return { groupId, groupIndex, task, episodes };
  }
}
