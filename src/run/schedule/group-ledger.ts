import { setMaxListeners } from "node:events";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment } from "../../episode/episode-setup.ts";
import { UsageError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import type { Task } from "../../task.ts";
import { askSource, type AskOptions } from "./ask-source.ts";
import type { StartedGroup } from "../folder/started-groups.ts";
import type { FinishedEpisode } from "../folder/episode-row.ts";
import type { EpisodeGroup } from "./group.ts";
import { groupIdOf } from "./group-id.ts";
import { isRecordedAs, taskRecordKey, type TaskRecord } from "../folder/task-record.ts";
import {
  requireSameGroup,
  requireSameGroups,
  type StartedAttempt,
  type EarlierGroup,
} from "../folder/same-groups.ts";
import type { Fork, SourcedTask, TaskSource } from "./task-source.ts";
import type { SharedPrefix } from "./shared-prefix.ts";

/** A group of which attempts are to be played, or are being played. */
export interface OpenGroup {
  readonly groupId: string;
  readonly groupIndex: number;
  readonly task: Task;
  /** Attempts at the task in all. */
  readonly begun: number;
  /** Attempts that an earlier start finished. */
  readonly earlier: readonly FinishedEpisode[];
  /** Those that this start finished. */
  readonly episodes: Episode[];
  /** Jobs that are there once the first attempt has ended. */
  readonly waiting: AttemptJob[];
  /** The first attempt, where others part from it and it has ended in this start. */
  trunk?: SharedPrefix;
  /** Aborted when the group needs no more attempts. */
  readonly giveUp: AbortController;
  /** Attempts that had ended and whose lines were lost: the group is not whole before these are back. */
  readonly lost: Set<string>;
  /** No further attempt is needed. */
  isWhole: boolean;
}

/** Attempts of a group that have not ended. */
export function attemptsLeft({ begun, earlier, episodes }: OpenGroup): number {
  return begun - earlier.length - episodes.length;
}

/** An attempt that is to be played. */
export interface AttemptJob {
  readonly group: OpenGroup;
  readonly assignment: EpisodeAssignment;
  /** What the attempt parts from; absent where it begins anew. */
  readonly fork?: Fork;
}

/** A group that is begun: nobody can take its attempts before `release()`. */
export interface StartedTask {
  readonly group: OpenGroup;
  readonly jobs: readonly AttemptJob[];
  /** Whether its task is to be noted. */
  readonly isNoted: boolean;
  readonly fork?: Fork;
}

/** A group that earlier starts brought to its end. */
export interface CompletedGroup {
  readonly groupIndex: number;
  /** At least one. */
  readonly rows: readonly FinishedEpisode[];
}

/**
 * Keeps account of a run's groups: which there were, which are open, and which attempts are next. Of what
 * is finished only ids stay in mind.
 */
export class GroupLedger {
  readonly #source: TaskSource;
  readonly #size: number;
  readonly #begun: number;
  readonly #seed: number;
  /** Whether the other attempts of a group wait for its first one. */
  readonly isBranching: boolean;
  /** Groups whose other attempts wait for their first one. */
  #waitingCount = 0;
  #branched: Resolvers<void> | undefined;
  /** Finished attempts of earlier starts, by group; a group is forgotten once it is passed. */
  readonly #earlier = new Map<number, FinishedEpisode[]>();
  /** Attempts that had ended and whose lines were lost, by the ids of their groups. */
  readonly #lost = new Map<string, string[]>();
  /** Attempts that earlier starts began, by group, of a source that is to give their groups again; as `#earlier`. */
  readonly #begunBefore = new Map<number, StartedAttempt[]>();
  /** What such a source gave beforehand, until it is needed. */
  readonly #givenBefore = new Map<number, SourcedTask | undefined>();
  /** All that earlier starts finished, also those of groups behind the last that the source gives now. */
  readonly finishedBefore: readonly FinishedEpisode[];
  #furtherCount = 0;
  /** What groups were noted with by earlier starts (see `notedKey()`), until the source gives them again. */
  readonly #notedBefore = new Map<string, string>();
  #jobs: AttemptJob[] = [];
  #nextJob = 0;
  #nextGroup = 0;
  /** Up to there, from the next one on, earlier starts have brought all groups to their end. */
  #nextLeft = 0;
  /** The first place before that one of a group that has not ended and is not opened again. */
  #firstLeft = Infinity;
  #hasEnded = false;
  #openCount = 0;
  readonly #knownIds = new Set<string>();
  /**
   * `rolloutIds[i]` is that of attempt i mod `begun` of group ⌊i / begun⌋; absent where it was not begun. It ends
   * with the last group of which any was begun: how many there will be may be a number beyond all lists.
   */
  readonly rolloutIds: (string | undefined)[] = [];
  readonly #failed = new Set<string>();
  readonly #done = new Set<string>();

  constructor(options: {
    readonly source: TaskSource;
    readonly size: number;
    readonly begun: number;
    readonly seed: number;
    readonly finished: readonly FinishedEpisode[];
    /** Rollouts that had ended and whose lines were lost. Default: none. */
    readonly lost?: Iterable<string>;
    /** Whether the other attempts of a group wait for its first one. Default false. */
    readonly isBranching?: boolean;
  }) {
    this.#source = options.source;
    this.#size = options.size;
    this.#begun = options.begun;
    this.#seed = options.seed;
    this.isBranching = options.isBranching ?? false;
    for (const rolloutId of options.lost ?? []) {
      const groupId = groupIdOf(rolloutId);
      // Of others there will be no attempt that could bring them back.
      if (!(Number(rolloutId.slice(groupId.length + 1)) < this.#begun)) continue;
      const others = this.#lost.get(groupId);
      if (others === undefined) this.#lost.set(groupId, [rolloutId]);
      else others.push(rolloutId);
    }
    const { length = Infinity } = options.source;
    const before: FinishedEpisode[] = [];
    for (const row of options.finished) {
      const { groupIndex } = row;
      if (groupIndex === undefined || row.sampleIndex >= this.#begun) continue;
      before.push(row);
      if (groupIndex >= length) this.#furtherCount += 1;
      const others = this.#earlier.get(groupIndex);
      if (others === undefined) this.#earlier.set(groupIndex, [row]);
      else others.push(row);
      this.#noteId(groupIndex, row.sampleIndex, row.rolloutId);
      this.#noteEnd(row);
    }
    this.finishedBefore = before;
  }

  /** Attempts of groups behind the last that the source gives now: those that were finished, and those that go on. */
  get furtherCount(): number {
    return this.#furtherCount;
  }

  /** Groups that there will be and of which no attempt was begun, as far as that is known. */
  get unbegunCount(): number {
    const { length = 0 } = this.#source;
    if (this.#hasEnded) return 0;
    return Math.max(0, length - this.rolloutIds.length / this.#begun);
  }

  /** Whether there is nothing left to be played. */
  get isAllFinished(): boolean {
    const { length } = this.#source;
    // Attempts that nobody took may be left of groups that are whole without them.
    if (this.#openCount > 0) return false;
    if (this.#hasEnded) return true;
    return length !== undefined && this.#areFinishedUpTo(length);
  }

  /** Whether `begin()` may give another group; of a source that does not say how many it has, only asking tells. */
  get mayBegin(): boolean {
    const { length = Infinity } = this.#source;
    if (this.#hasEnded || this.#nextGroup >= length) return false;
    // Each worker asks, with a hundred thousand groups that have ended behind it.
    let next = Math.max(this.#nextGroup, this.#nextLeft);
    while (next < length && this.#hasEndedBefore(this.#earlier.get(next))) next += 1;
    this.#nextLeft = next;
    return next < length;
  }

  /**
   * Whether so many groups have ended, as none is open; the source may have fewer, and those that it passed over may
   * have been left open by earlier starts.
   */
  areFinished(groupCount: number): boolean {
    return this.#firstLeft >= groupCount && this.#areFinishedUpTo(groupCount);
  }

  /** Whether so many groups have ended, those that were passed not counted. */
  #areFinishedUpTo(groupCount: number): boolean {
    for (let index = this.#nextGroup; index < groupCount; index++) {
      if (!this.#hasEndedBefore(this.#earlier.get(index))) return false;
    }
    return true;
  }

  /** Whether a group that is still to be passed has nothing left to be played. */
  hasEnded(groupIndex: number): boolean {
    const { length = Infinity } = this.#source;
    return groupIndex >= length || this.#hasEndedBefore(this.#earlier.get(groupIndex));
  }

  /** Resolves when attempts can be taken that waited for the first one of their group, or by `wake()`. */
  async untilBranched(): Promise<"branched"> {
    this.#branched ??= withResolvers();
    await this.#branched.promise;
    return "branched";
  }

  wake(): void {
    this.#branched?.resolve();
    this.#branched = undefined;
  }

  /** Whether there will be further attempts of groups that are open. */
  get isWaiting(): boolean {
    return this.#waitingCount > 0;
  }

  /** How a rollout ended; nothing where it did not, or is not known. */
  howEnded(rolloutId: string): "failed" | "other" | undefined {
    if (this.#failed.has(rolloutId)) return "failed";
    return this.#done.has(rolloutId) ? "other" : undefined;
  }

  /**
   * The groups that earlier starts brought to their end, with their finished attempts, in order of their places. Those
   * that a repeatable source does not give any more are not among them.
   */
  get wholeBefore(): readonly CompletedGroup[] {
    const { length = Infinity, repeatable = false } = this.#source;
    return [...this.#earlier]
      .filter(
        ([groupIndex, rows]) => this.#hasEndedBefore(rows) && !(repeatable && groupIndex >= length),
      )
      .map(([groupIndex, rows]) => ({ groupIndex, rows }))
      .toSorted((one, other) => one.groupIndex - other.groupIndex);
  }

  /**
   * Opens the groups again that earlier starts began and did not end, of a source that may not give their
   * tasks again. Where it does, they are passed over.
   *
   * @param recall - Gives the task that was noted (see `recallTask()`). Asked for those that are opened alone: the
   *   task of a group that has ended need not be there any more.
   * @returns how many these are.
   */
  async reopen(
    begun: readonly StartedGroup[],
    recall: (noted: TaskRecord) => Task,
  ): Promise<number> {
    let count = 0;
    const told = new Set<number>();
    // Attempts of a group of which nothing is told are no other group's.
    for (const groupIndex of this.#earlier.keys()) {
      this.#nextGroup = Math.max(this.#nextGroup, groupIndex + 1);
    }
    for (const noted of begun) {
      if (isTurnOver()) await takeTurn();
      const { groupIndex, groupId, fork } = noted;
      told.add(groupIndex);
      this.#nextGroup = Math.max(this.#nextGroup, groupIndex + 1);
      this.#notedBefore.set(groupId, taskRecordKey(noted));
      const earlier = this.#earlier.get(groupIndex) ?? [];
      this.#earlier.delete(groupIndex);
      if (this.#hasEndedBefore(earlier)) continue;
      const task = recall(noted);
      requireSameGroup(groupId, { groupIndex, earlier });
      this.release(this.#open({ groupIndex, groupId, task, earlier }, fork));
      count += 1;
    }
    let left = 0;
    while (told.has(left) || this.#hasEndedBefore(this.#earlier.get(left))) left += 1;
    if (left < this.#nextGroup) this.#firstLeft = left;
    return count;
  }

  /** The next attempt of the groups that are open. */
  takeJob(): AttemptJob | undefined {
    for (;;) {
      const job = this.#jobs[this.#nextJob];
      if (job === undefined) {
        this.#jobs.length = 0;
        this.#nextJob = 0;
        return undefined;
      }
      this.#nextJob += 1;
      if (!job.group.isWhole) return job;
    }
  }

  /**
   * Begins the next group that is not finished: its attempts can be taken once it is released, so that nothing
   * is played of a task that a later start would not know.
   *
   * @returns the group, and whether its task is to be noted; nothing where there is none.
   * @throws UsageError where it has the id of another one, and as `askSource()` does.
   */
  async begin(options: AskOptions): Promise<StartedTask | undefined> {
    const { length, repeatable = false } = this.#source;
    for (;;) {
      const groupIndex = this.#nextGroup;
      if (this.#hasEnded || (length !== undefined && groupIndex >= length)) return undefined;
      const earlier = this.#earlier.get(groupIndex) ?? [];
      // Of its task, as a repeatable source gives it again, it is by `holdEarlier()`.
      if (repeatable && this.#hasEndedBefore(earlier)) {
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
      if (this.#wasNoted(groupId, task)) {
        // A long list may be gone through again.
        if (isTurnOver()) await takeTurn();
        continue;
      }
      requireSameGroup(groupId, {
        groupIndex,
        earlier,
        begun: this.#begunBefore.get(groupIndex) ?? [],
      });
      this.#pass(groupIndex);
      const opened = this.#open({ groupIndex, groupId, task, earlier }, fork);
      return { ...opened, isNoted: !repeatable, ...(fork && { fork }) };
    }
  }

  /** The next group is the one behind it. */
  #pass(groupIndex: number): void {
    this.#nextGroup = groupIndex + 1;
    this.#earlier.delete(groupIndex);
    this.#begunBefore.delete(groupIndex);
    this.#givenBefore.delete(groupIndex);
  }

  /** What the source gives in a place: once, where it gave that beforehand. */
  async ask(groupIndex: number, options: AskOptions): Promise<SourcedTask | undefined> {
    const given = this.#givenBefore.get(groupIndex);
    const isGiven = this.#givenBefore.delete(groupIndex);
    return isGiven ? given : await askSource(this.#source, groupIndex, options);
  }

  /**
   * Holds what earlier starts finished or began against a source that is to give the same groups again. To be called
   * before anything else is done: a start with other tasks leaves all as it is.
   *
   * Its places are asked for in their order, and what it gives for those that are needed is kept: a source may read
   * forward only. One that is told of groups may give no more of them until some have ended: it is asked for no place
   * behind the first that is to be played, and the further ones are held as they are begun.
   *
   * @param begun - Attempts that were begun, as far as that is known.
   * @param wanted - Places of groups that are whole and are asked for all the same (see `ask()`).
   * @throws UsageError as `requireSameGroups()` does.
   */
  async holdEarlier(
    begun: readonly StartedAttempt[],
    wanted: ReadonlySet<number>,
    options: AskOptions,
  ): Promise<void> {
    const source = this.#source;
    if (source.repeatable !== true) return;
    for (const attempt of begun) {
      const others = this.#begunBefore.get(attempt.groupIndex);
      if (others === undefined) this.#begunBefore.set(attempt.groupIndex, [attempt]);
      else others.push(attempt);
    }
    const isNeeded = ({ groupIndex, earlier }: EarlierGroup): boolean =>
      wanted.has(groupIndex) || !this.#hasEndedBefore(earlier);
    let groups = this.#placesBefore().map((groupIndex) => ({
      groupIndex,
      earlier: this.#earlier.get(groupIndex) ?? [],
      begun: this.#begunBefore.get(groupIndex) ?? [],
    }));
    if (source.onGroupEnd !== undefined) {
      let first = 0;
      while (this.#hasEndedBefore(this.#earlier.get(first))) first += 1;
      groups = groups.filter((group) => group.groupIndex <= first && isNeeded(group));
    }
    const given = await requireSameGroups(groups, { ...options, source, isNeeded });
    for (const [groupIndex, sourced] of given) this.#givenBefore.set(groupIndex, sourced);
  }

  /** Returns each place up to the last that earlier starts finished or began, in order. */
  #placesBefore(): readonly number[] {
    const places = [...this.#earlier.keys(), ...this.#begunBefore.keys()];
    const count = places.reduce((most, place) => Math.max(most, place + 1), 0);
    return Array.from({ length: count }, (_, place) => place);
  }

  /**
   * Whether the source gives a group again that an earlier start noted: it has ended, or goes on already. Each
   * is passed over once, so that a source that gives nothing else comes to an end.
   */
  #wasNoted(groupId: string, task: Task): boolean {
    const noted = this.#notedBefore.get(groupId);
    if (noted === undefined) return false;
    this.#notedBefore.delete(groupId);
    if (isRecordedAs(noted, task)) return true;
    throw new UsageError(
      `Cannot play ${task.environment}: the source gives another task as ${groupId} than an earlier start ` +
        "began under that id; give it a `groupId` of its own, or choose another folder",
    );
  }

  /** The group's attempts are there to be taken. */
  release({ group, jobs }: Pick<StartedTask, "group" | "jobs">): void {
    const waitForFirst = this.isBranching && jobs[0]?.assignment.sampleIndex === 0;
    // One by one: there may be more than a call can have arguments.
    for (const [place, job] of jobs.entries()) {
      (waitForFirst && place > 0 ? group.waiting : this.#jobs).push(job);
    }
    if (group.waiting.length > 0) this.#waitingCount += 1;
  }

  #open(
    about: Pick<OpenGroup, "groupIndex" | "groupId" | "task" | "earlier">,
    fork?: Fork,
  ): Pick<StartedTask, "group" | "jobs"> {
    const { groupIndex, groupId, task, earlier } = about;
    // The others of it are counted already.
    if (groupIndex >= (this.#source.length ?? Infinity)) {
      this.#furtherCount += this.#begun - earlier.length;
    }
    const group: OpenGroup = {
      ...about,
      begun: this.#begun,
      episodes: [],
      waiting: [],
      lost: new Set(this.#lost.get(groupId)),
      giveUp: new AbortController(),
      isWhole: false,
    };
    // Each of its attempts listens to it.
    setMaxListeners(0, group.giveUp.signal);
    const done = new Set(earlier.map(({ sampleIndex }) => sampleIndex));
    // Opened for these alone: those that it was whole without were given up.
    const wants = this.isWhole(earlier) ? group.lost : undefined;
    const jobs: AttemptJob[] = [];
    for (let sampleIndex = 0; sampleIndex < this.#begun; sampleIndex++) {
      if (done.has(sampleIndex)) continue;
      const rolloutId = `${groupId}#${sampleIndex}`;
      if (wants?.has(rolloutId) === false) continue;
      if (this.#knownIds.has(rolloutId)) {
        throw new UsageError(
          `Cannot play ${task.environment}: task ${task.index} has the id of another one, ${groupId}`,
        );
      }
      this.#noteId(groupIndex, sampleIndex, rolloutId);
      const seed = this.#seed + groupIndex * this.#begun + sampleIndex;
      const place = { task, rolloutId, groupId, groupIndex, sampleIndex };
      const assignment: EpisodeAssignment =
        fork === undefined
          ? { ...place, seed }
          : { ...place, seed: fork.seed, samplingSeed: seed, forkedFrom: fork.place };
      jobs.push({ group, assignment, ...(fork && { fork }) });
    }
    this.#openCount += 1;
    return { group, jobs };
  }

  /** Takes note of a finished attempt; returns the group where it was the last that it needed. */
  add(group: OpenGroup, episode: Episode): EpisodeGroup | undefined {
    this.#noteEnd(episode);
    if (group.waiting.length > 0) {
      // The oldest groups come first.
      this.#jobs = [...group.waiting.splice(0), ...this.#jobs.slice(this.#nextJob)];
      this.#nextJob = 0;
      this.#waitingCount -= 1;
      this.wake();
    }
    if (group.isWhole) return undefined;
    group.episodes.push(episode);
    group.lost.delete(episode.rolloutId);
    if (group.lost.size > 0 || !this.isWhole([...group.earlier, ...group.episodes]))
      return undefined;
    group.isWhole = true;
    group.giveUp.abort();
    this.#openCount -= 1;
    const { groupId, groupIndex, task } = group;
    const ended = group.episodes.splice(0);
    // What was brought back may be more than it takes.
    const those = this.#lost.has(groupId)
      ? new Set(this.firstWhole([...group.earlier, ...ended]))
      : undefined;
    const episodes = ended
      .filter((one) => those?.has(one) ?? true)
      .toSorted((one, other) => one.sampleIndex - other.sampleIndex);
    return { groupId, groupIndex, task, episodes };
  }

  /** Of a group's attempts in the order in which they ended, those that made it whole. */
  firstWhole<Row extends Pick<FinishedEpisode, "reward">>(rows: readonly Row[]): readonly Row[] {
    const isWhole = (_: Row, index: number): boolean => this.isWhole(rows.slice(0, index + 1));
    const last = rows.findIndex(isWhole);
    return last < 0 ? rows : rows.slice(0, last + 1);
  }

  /** Whether a group of these needs no more attempts: as many are scored as it has, or all have ended. */
  isWhole(rows: readonly Pick<FinishedEpisode, "reward">[]): boolean {
    if (rows.length >= this.#begun) return true;
    return rows.filter(({ reward }) => reward !== undefined).length >= this.#size;
  }

  /** Whether that is so of a group of earlier starts, and nothing of it was lost: what had ended is brought back. */
  #hasEndedBefore(rows: readonly FinishedEpisode[] = []): boolean {
    const [first] = rows;
    if (first !== undefined && this.#lost.has(groupIdOf(first.rolloutId))) return false;
    return this.isWhole(rows);
  }

  #noteId(groupIndex: number, sampleIndex: number, rolloutId: string): void {
    this.#knownIds.add(rolloutId);
    // Those of its group that are not begun have their places, too.
    const groupEnd = (groupIndex + 1) * this.#begun;
    if (this.rolloutIds.length < groupEnd) this.rolloutIds.length = groupEnd;
    this.rolloutIds[groupIndex * this.#begun + sampleIndex] = rolloutId;
  }

  #noteEnd({ rolloutId, outcome }: Pick<FinishedEpisode, "rolloutId" | "outcome">): void {
    if (outcome === "failed") this.#failed.add(rolloutId);
    else this.#done.add(rolloutId);
  }
}
