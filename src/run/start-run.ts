import { setMaxListeners } from "node:events";
import type { Episode } from "../episode/episode.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { UsageError, describeError } from "../errors.ts";
import { systemClock, type Clock } from "../internal/clock.ts";
import type { Redactor } from "../internal/redactor.ts";
import { takeTurn } from "../internal/take-turn.ts";
import { withResolvers, type Resolvers } from "../internal/with-resolvers.ts";
import type { SlimeAttempt, SlimeSummary } from "../sink/slime-file.ts";
import { Branches } from "./branches.ts";
import { begunEvent } from "./begun-groups.ts";
import type { AttemptPlayer } from "./attempt-player.ts";
import { episodeEvent, playAttempts } from "./play-attempts.ts";
import type { FinishedEpisode } from "./episode-row.ts";
import type { EpisodeGroup } from "./group.ts";
import { GroupBook, type AttemptJob, type OpenGroup } from "./group-book.ts";
import { PolicyGate, type UpdateMode } from "./policy-gate.ts";
import type { RecordingJournal } from "./recording-journal.ts";
import type { RunFolder } from "./run-folder.ts";
import { RunTally, type RunProgress } from "./run-progress.ts";
import { PolicyVersions, type StalenessOptions } from "./staleness.ts";
import type { TaskSource } from "./task-source.ts";
import { trunkOf } from "./trunk.ts";

/** How attempts are grouped. */
export interface GroupingOptions {
  /** Attempts at each task: the group's size. At least 1. */
  readonly size: number;
  /**
   * Attempts that are begun at each task, `size` or more: the group is whole as soon as `size` of them are
   * scored, and those that are still played then are given up. Default `size`.
   */
  readonly begun?: number;
  /** Plays of an attempt before its failure is final. At least 1. Default 2. */
  readonly attempts?: number;
  /**
   * Which groups are handed out, such as `rewardSpread()`: true, or why not. The others stay in the
   * folder. Default all.
   */
  readonly keep?: (group: EpisodeGroup) => boolean | string;
  /**
   * Tree sampling: attempts 1, 2, … of a group wait for attempt 0 and part from it with these turns
   * (0-based, taken in turn; the last turn where there are fewer). What they share is trained in the row
   * of attempt 0 alone. Takes an environment and a user that are repeatable. Default: all begin anew.
   */
  readonly branchAt?: readonly number[];
}

/** How many episodes are played at once. */
export interface AdmissionOptions {
  /** Episodes at once. At least 1. */
  readonly concurrency: number;
  /** Asked for a place before each attempt, oldest groups first. Default: there is one at once. */
  readonly gate?: AdmissionGate;
  /** Groups that may wait to be taken before no further ones are begun. Default unlimited. */
  readonly ahead?: number;
}

/** Lets attempts in, a few at a time. */
export interface AdmissionGate {
  /**
   * Waits for a place; lower priorities first.
   *
   * @returns what gives the place back.
   */
  admit(options: { readonly priority: number; readonly signal: AbortSignal }): Promise<() => void>;
}

/** What a run is. */
export interface StartRunOptions {
  readonly source: TaskSource;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  readonly grouping: GroupingOptions;
  readonly admission: AdmissionOptions;
  /** Default: groups of any age are handed out. */
  readonly staleness?: StalenessOptions;
  /** Where the run is written, and goes on after a stop; absent: nothing is written. */
  readonly folder?: RunFolder;
  /** Who plays its attempts. Default: this process. */
  readonly player?: AttemptPlayer;
  /** Seeds its episodes. Default 0. */
  readonly seed?: number;
  /** The run stops when this many episodes have failed in a row: something is down for good. Default 20. */
  readonly maxFailuresInRow?: number;
  /** Aborted, the run stops at once; what was recorded of its episodes goes on in the next start. */
  readonly signal?: AbortSignal;
  /** Takes secrets out of all that is written, told and returned of an episode, ids excepted. */
  readonly redactor?: Redactor;
  /**
   * Whether groups that earlier starts ended are handed out again, unless it is noted in the folder that
   * they were taken; it is noted then. A group counts as taken when the next one is asked for. Default
   * false.
   */
  readonly redeliver?: boolean;
  /** Told whenever an episode starts or ends. */
  readonly onProgress?: (progress: RunProgress) => void;
  /** Told of each finished episode of this start, after it is on the disk. */
  readonly onEpisode?: (episode: Episode) => void;
}

/** How a run ended. */
export interface RunResult {
  readonly progress: RunProgress;
  /** `finished`: all groups of the source are on the disk. The others can be resumed. */
  readonly end: "finished" | "interrupted" | "too-many-failures";
  /** What the slime file holds; absent where none is asked for. */
  readonly slime?: SlimeSummary;
}

/** A run that is under way: its groups as they end, and the ways to steer it. */
export interface LiveRun extends AsyncIterable<EpisodeGroup> {
  /** How it ended. Rejects as the iteration does. */
  readonly result: Promise<RunResult>;
  progress(): RunProgress;
  /** Says that the policy's weights are of this version from now on. */
  announcePolicy(version: number): void;
  /**
   * Changes the policy's weights while episodes go on: see `UpdateMode`.
   *
   * @param update - Changes them, such as by a call of the engine's own.
   */
  updatePolicy(version: number, update: () => Promise<void>, mode?: UpdateMode): Promise<void>;
  /** Lets the policy be asked for nothing until `resume()`. Default `hold`. */
  pause(mode?: Exclude<UpdateMode, "finish">): Promise<void>;
  resume(): void;
  /**
   * Begins nothing any more, and ends the episodes that are played as `aborted`, with what they have: the
   * next start goes on with them. Resolves when the run has ended.
   */
  interrupt(): Promise<RunResult>;
}

/**
 * Starts a run: plays groups of attempts at the tasks of a source, a bounded number at once, and hands out
 * each group as it ends. Where it is written to a folder, an episode is on the disk before anybody is told
 * of it, and a run that was stopped in any way goes on in the middle of its episodes. Whoever stops
 * iterating stops the run.
 *
 * The iteration and `result` throw UsageError where the disk refuses an episode, and whatever
 * `playEpisode()` throws on our own bugs, after the other episodes were stopped.
 */
export function startRun(options: StartRunOptions): LiveRun {
  return new GroupRun(options);
}

class GroupRun implements LiveRun {
  readonly #options: StartRunOptions;
  readonly #stop = new AbortController();
  readonly #interruption = new AbortController();
  /** Aborted when nothing is begun any more. */
  readonly #ending = new AbortController();
  readonly #gate: PolicyGate;
  /** With the gate in front of the engine. */
  readonly #setup: StartRunOptions["setup"];
  readonly #versions: PolicyVersions;
  readonly #tally: RunTally;
  readonly #book: GroupBook;
  readonly #branches: Branches;
  readonly #clock: Clock;
  readonly #ready: EpisodeGroup[] = [];
  readonly result: Promise<RunResult>;
  #recording: RecordingJournal | undefined;
  #waiting: Resolvers<void> | undefined;
  #taken: Resolvers<void> | undefined;
  #drawing: Promise<unknown> = Promise.resolve();
  /** A further group, where one is waited for. */
  #beginning: Promise<"begun" | "none"> | undefined;
  #failuresInRow = 0;
  #isPaused = false;
  /** Updates of the policy that are under way. */
  #updateCount = 0;
  /** Groups that this start offers the trainer, or will: those that are left out are none. */
  #offeredCount = 0;
  #hasEnded = false;
  #crash: { readonly error: unknown } | undefined;

  constructor(options: StartRunOptions) {
    this.#options = options;
    const { admission, folder, grouping, seed = 0, setup, source } = options;
    const { size, begun = size, attempts = 2, branchAt = [] } = grouping;
    requireBranching(branchAt, setup);
    requireCounts({ size, begun, attempts, concurrency: admission.concurrency });
    if (begun < size) {
      throw new UsageError(
        `Cannot begin ${begun} attempts for groups of ${size}: expected as many`,
      );
    }
    this.#clock = setup.clock ?? systemClock;
    this.#gate = new PolicyGate(setup.engine);
    this.#setup = { ...setup, engine: this.#gate.engine };
    this.#versions = new PolicyVersions(options.staleness);
    const planned = source.length === undefined ? undefined : source.length * size;
    this.#tally = new RunTally({ ...(planned !== undefined && { planned }), now: setup.now });
    this.#branches = new Branches(branchAt, folder);
    this.#book = new GroupBook({
      ...{ source, size, begun, seed, finished: folder?.finished ?? [] },
      isBranching: this.#branches.areAny,
    });
    // Each running episode listens to them.
    setMaxListeners(0, this.#stop.signal, this.#interruption.signal);
    const onStop = (): void => {
      this.#ending.abort();
      this.#taken?.resolve();
      this.#book.wake();
    };
    for (const { signal } of [this.#stop, this.#interruption]) {
      signal.addEventListener("abort", onStop, { once: true });
    }
    this.result = this.#run();
    // Whoever iterates is told there.
    this.result.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<EpisodeGroup> {
    try {
      for (;;) {
        const group = this.#ready.shift();
        if (group !== undefined) {
          this.#taken?.resolve();
          const due = await this.#handOut(group);
          if (due === undefined) continue;
          yield due;
          await this.#noteTaken(group);
          continue;
        }
        if (this.#hasEnded) break;
        this.#waiting ??= withResolvers();
        await this.#waiting.promise;
      }
    } finally {
      if (!this.#hasEnded) this.#stop.abort(new DOMException("the run was left", "AbortError"));
      await this.result;
    }
  }

  /** The group as it is handed out, for it has aged while it waited; nothing where it is too old by now. */
  async #handOut(group: EpisodeGroup): Promise<EpisodeGroup | undefined> {
    const staleness = this.#versions.stalenessOf(group);
    const aged: EpisodeGroup = { ...group, ...(staleness === undefined ? {} : { staleness }) };
    const reason = this.#versions.reasonToDrop(aged);
    if (reason === undefined) return this.#versions.mark(aged);
    this.#tally.groupWithdrawn();
    await this.#leaveOut(aged, reason);
    return undefined;
  }

  async #leaveOut({ groupIndex, groupId, staleness }: EpisodeGroup, reason: string): Promise<void> {
    const { folder, setup } = this.#options;
    const about = { groupIndex, groupId, ...(staleness !== undefined && { staleness }) };
    // Nobody takes it: another one may be begun in its place.
    this.#offeredCount -= 1;
    this.#taken?.resolve();
    await folder?.writeEvent({ type: "group-left-out", atMs: setup.now(), ...about, reason });
  }

  async #noteTaken({ groupIndex }: EpisodeGroup): Promise<void> {
    const { folder, redeliver = false, setup } = this.#options;
    if (!redeliver) return;
    await folder?.writeEvent({ type: "group-taken", atMs: setup.now(), groupIndex });
  }

  progress(): RunProgress {
    return this.#tally.progress();
  }

  announcePolicy(version: number): void {
    this.#versions.announce(version);
    this.#options.player?.announcePolicy?.(version);
    this.#taken?.resolve();
  }

  async updatePolicy(
    version: number,
    update: () => Promise<void>,
    mode: UpdateMode = "hold",
  ): Promise<void> {
    this.#updateCount += 1;
    try {
      await this.#closeGates(mode);
      await update();
      this.announcePolicy(version);
    } finally {
      this.#updateCount -= 1;
      this.#openGate();
    }
  }

  async pause(mode: Exclude<UpdateMode, "finish"> = "hold"): Promise<void> {
    this.#isPaused = true;
    await this.#closeGates(mode);
  }

  resume(): void {
    this.#isPaused = false;
    this.#openGate();
  }

  /** Lets nothing be sampled here or elsewhere. */
  async #closeGates(mode: UpdateMode): Promise<void> {
    await Promise.all([this.#gate.close(mode), this.#options.player?.pause?.(mode)]);
  }

  #openGates(): void {
    this.#gate.open();
    this.#options.player?.resume?.();
  }

  /** Lets the policy be asked again, unless somebody else keeps it from that. */
  #openGate(): void {
    if (!this.#isPaused && this.#updateCount === 0) this.#openGates();
  }

  async interrupt(): Promise<RunResult> {
    this.#interruption.abort();
    this.#openGates();
    return await this.result;
  }

  async #run(): Promise<RunResult> {
    const { signal } = this.#options;
    const forward = (): void => this.#stop.abort(signal?.reason);
    if (signal?.aborted) forward();
    signal?.addEventListener("abort", forward, { once: true });
    try {
      return await this.#playAll();
    } finally {
      signal?.removeEventListener("abort", forward);
      this.#hasEnded = true;
      this.#waiting?.resolve();
    }
  }

  async #playAll(): Promise<RunResult> {
    const { admission, folder, redactor } = this.#options;
    for (const row of this.#book.finishedBefore) this.#tally.episodeResumed(row);
    await this.#takeUp();
    if (!this.#book.isAllFinished) await folder?.takeBackEnd();
    await folder?.writeEvent(this.#startEvent(folder));
    await using recording = await folder?.openRecording({
      clock: this.#clock,
      ...(redactor && { redactor }),
      onFailure: (error) => this.#fail(error),
    });
    this.#recording = recording;
    const workers = Array.from({ length: this.#workerCount(admission.concurrency) }, () =>
      this.#work(),
    );
    await Promise.all(workers);
    await recording?.flush();
    if (this.#crash !== undefined) throw this.#crash.error;
    const end = this.#end();
    const slime = await this.#finishFiles(end);
    const progress = this.#tally.progress();
    return { progress, end, ...(slime && { slime }) };
  }

  /** Goes on with the groups that earlier starts began, and hands out those that nobody took. */
  async #takeUp(): Promise<void> {
    const { folder, redeliver = false, source } = this.#options;
    if (folder === undefined || (source.repeatable === true && !redeliver)) return;
    const { begun, finished, settled } = await folder.readGroups();
    const untaken = this.#book.wholeBefore.filter((groupIndex) => !settled.has(groupIndex));
    const tasks = new Map(begun.map(({ groupIndex, task }) => [groupIndex, task]));
    if (source.repeatable !== true) this.#offeredCount += this.#book.reopen(begun);
    if (!redeliver) return;
    const wanted = new Set(untaken);
    const rows = this.#book.finishedBefore.filter((row) => wanted.has(row.groupIndex ?? -1));
    const found = await folder.readEpisodes(new Set(rows.map(({ rolloutId }) => rolloutId)));
    for (const groupIndex of untaken) {
      const episodes = found.filter((episode) => episode.groupIndex === groupIndex);
      const [first] = episodes;
      const options = { signal: this.#stop.signal };
      const task = tasks.get(groupIndex) ?? (await source.at(groupIndex, options))?.task;
      if (first === undefined || task === undefined) continue;
      const inOrder = episodes.toSorted((one, other) => one.sampleIndex - other.sampleIndex);
      this.#offeredCount += 1;
      const group = { groupId: first.groupId, groupIndex, task, episodes: inOrder };
      if (finished.has(groupIndex)) this.#hand(group);
      // The stop came before anybody was told that it had ended.
      else await this.#conclude(group);
    }
  }

  #workerCount(concurrency: number): number {
    const { source, grouping } = this.#options;
    const { size, begun = size } = grouping;
    return Math.min(concurrency, (source.length ?? Infinity) * begun);
  }

  /** Puts the files of a run in order that comes to its end or stops. */
  async #finishFiles(end: RunResult["end"]): Promise<SlimeSummary | undefined> {
    const { folder, setup } = this.#options;
    if (folder === undefined) return undefined;
    const ids = this.#book.rolloutIds;
    if (end === "finished") await folder.sortSamples(ids.map((id) => id ?? ""));
    const slime = await folder.writeSlime(this.#slimeAttempts());
    await folder.pruneRecording((rolloutId) => this.#book.howEnded(rolloutId));
    await folder.writeEvent({ type: "run-ended", atMs: setup.now(), end });
    const progress = this.#tally.progress();
    await folder.writeSummary({ end, ...progress, ...(slime && { slime }) });
    return slime;
  }

  /** Where the attempts stand in slime's batch; one that was not begun has no id, as it has no rows. */
  #slimeAttempts(): readonly SlimeAttempt[] {
    const { size, begun = size } = this.#options.grouping;
    return Array.from(this.#book.rolloutIds, (rolloutId = "", index) => ({
      ...{ rolloutId, index },
      groupIndex: Math.floor(index / begun),
    }));
  }

  /** Says what is played, so that the folder can be used even if its `run.json` is lost. */
  #startEvent(folder: RunFolder) {
    const { found: _found, ...manifest } = folder.manifest;
    const { planned, resumed } = this.#tally.progress();
    const atMs = this.#options.setup.now();
    return { type: "run-started", atMs, planned, resumed, manifest };
  }

  #end(): RunResult["end"] {
    if (this.#book.isAllFinished) return "finished";
    const { maxFailuresInRow = 20, signal } = this.#options;
    const isOutage = this.#failuresInRow >= maxFailuresInRow && this.#stop.signal.aborted;
    return isOutage && signal?.aborted !== true ? "too-many-failures" : "interrupted";
  }

  #fail(error: unknown): void {
    this.#crash ??= { error };
    this.#stop.abort(error);
  }

  /** Plays one attempt after the other until none is left or the run stops. */
  async #work(): Promise<void> {
    const { signal } = this.#stop;
    while (!this.#isStopping) {
      try {
        await takeTurn();
        const job = await this.#nextJob();
        if (job === undefined) return;
        await this.#admitAndPlay(job);
      } catch (error) {
        if (signal.aborted && error === signal.reason) return;
        this.#fail(error);
        return;
      }
    }
  }

  /** The next attempt, of the oldest group that has one; draws another group where none has. */
  async #nextJob(): Promise<AttemptJob | undefined> {
    const drawn = this.#drawing.then(async () => await this.#findJob());
    this.#drawing = drawn.catch(() => {});
    return await drawn;
  }

  async #findJob(): Promise<AttemptJob | undefined> {
    for (;;) {
      const job = this.#book.takeJob();
      if (job !== undefined) return job;
      // Attempts that waited for another one may come while a further group is waited for.
      const next = await this.#nextNews();
      if (this.#isStopping) return undefined;
      if (next === "none") {
        if (!this.#book.isWaiting) return undefined;
        await this.#book.untilBranched();
      }
    }
  }

  /** Begins another group, unless attempts can be taken before that is done. */
  async #nextNews(): Promise<"begun" | "none" | "branched"> {
    this.#beginning ??= this.#beginGroup();
    // Whoever comes next is told.
    this.#beginning.catch(() => {});
    const next = this.#branches.areAny
      ? await Promise.race([this.#beginning, this.#book.untilBranched()])
      : await this.#beginning;
    if (next !== "branched") this.#beginning = undefined;
    return next;
  }

  async #beginGroup(): Promise<"begun" | "none"> {
    if (!(await this.#waitForRoom())) return "none";
    const { folder, setup } = this.#options;
    const begun = await this.#drawGroup();
    if (begun === undefined) return "none";
    this.#offeredCount += 1;
    const { group, fork, isNoted } = begun;
    if (isNoted) {
      const { groupIndex, groupId, task } = group;
      const noted = begunEvent({ groupIndex, groupId, task, ...(fork && { fork }) });
      await folder?.writeEvent({ ...noted, atMs: setup.now() });
    }
    return "begun";
  }

  async #drawGroup(): ReturnType<GroupBook["begin"]> {
    const { signal } = this.#ending;
    try {
      return await this.#book.begin({ signal });
    } catch (error) {
      if (signal.aborted && error === signal.reason) return undefined;
      throw error;
    }
  }

  /** Waits until another group may be begun; false where the run stops first. */
  async #waitForRoom(): Promise<boolean> {
    const { ahead = Infinity } = this.#options.admission;
    while (
      !this.#isStopping &&
      (this.#ready.length >= ahead || !this.#versions.mayBegin(this.#offeredCount))
    ) {
      this.#taken = withResolvers();
      await this.#taken.promise;
    }
    this.#taken = undefined;
    return !this.#isStopping;
  }

  /** Whether nothing is begun any more. */
  get #isStopping(): boolean {
    return this.#ending.signal.aborted;
  }

  async #admitAndPlay(job: AttemptJob): Promise<void> {
    const { gate } = this.#options.admission;
    const { signal } = this.#stop;
    const leave = await gate?.admit({ priority: job.group.groupIndex, signal });
    try {
      await this.#playAndRecord(job);
    } finally {
      leave?.();
    }
  }

  async #playAndRecord(job: AttemptJob): Promise<void> {
    const { folder, setup, grouping, redactor, player, onEpisode, onProgress } = this.#options;
    const tally = this.#tally;
    if (job.group.isWhole) return;
    tally.episodeStarted();
    onProgress?.(tally.progress());
    let isCounted = false;
    try {
      const played = await playAttempts(await this.#branches.place(job), {
        setup: this.#setup,
        keepsInputs: this.#branches.areFrom(job),
        attempts: grouping.attempts ?? 2,
        signal: this.#stop.signal,
        interrupt: this.#interruption.signal,
        giveUp: job.group.giveUp.signal,
        tally,
        ...(folder && { folder }),
        ...(this.#recording && { recording: this.#recording }),
        ...(redactor && { redactor }),
        ...(player && { player }),
        onProgress: () => onProgress?.(tally.progress()),
      });
      if (played === undefined || played.episode.outcome === "aborted") return;
      const { episode, close } = played;
      this.#versions.see(episode);
      this.#taken?.resolve();
      // Whatever is finished can be replayed: its last inputs are not left to the next moment's write.
      await this.#recording?.flush();
      const episodeHash = await folder?.writeEpisode(episode);
      close();
      tally.episodeFinished(episode);
      isCounted = true;
      const event = episodeEvent("episode-finished", episode, setup.now());
      await folder?.writeEvent({ ...event, episodeHash });
      this.#countFailure(episode);
      onEpisode?.(episode);
      if (played.inputs !== undefined) job.group.trunk = trunkOf(episode, played.inputs);
      await this.#finishAttempt(job.group, episode);
    } finally {
      if (!isCounted) tally.episodeLeft();
      onProgress?.(tally.progress());
    }
  }

  #countFailure({ outcome }: Episode): void {
    const { maxFailuresInRow = 20 } = this.#options;
    this.#failuresInRow = outcome === "failed" ? this.#failuresInRow + 1 : 0;
    if (this.#failuresInRow < maxFailuresInRow) return;
    this.#stop.abort(new DOMException("too many episodes failed in a row", "AbortError"));
  }

  async #finishAttempt(open: OpenGroup, episode: Episode): Promise<void> {
    const group = this.#book.add(open, episode);
    if (group === undefined) return;
    await this.#conclude({ ...group, episodes: await this.#withEarlier(open, group.episodes) });
  }

  /** Tells the source of a group that has ended, and hands it out unless something speaks against it. */
  async #conclude(whole: EpisodeGroup): Promise<void> {
    const { folder, grouping, setup, source } = this.#options;
    const staleness = this.#versions.stalenessOf(whole);
    const aged: EpisodeGroup = { ...whole, ...(staleness === undefined ? {} : { staleness }) };
    callSource(source, aged);
    const verdict = grouping.keep?.(aged) ?? true;
    const reason = verdict === true ? this.#versions.reasonToDrop(aged) : verdict || "filtered";
    const { groupIndex, groupId } = aged;
    if (reason !== undefined) {
      this.#tally.groupLeftOut(staleness);
      await this.#leaveOut(aged, reason);
      return;
    }
    if (this.#options.redeliver) {
      const about = { groupIndex, groupId, ...(staleness !== undefined && { staleness }) };
      await folder?.writeEvent({ type: "group-finished", atMs: setup.now(), ...about });
    }
    this.#hand(whole, staleness);
  }

  #hand(group: EpisodeGroup, staleness?: number): void {
    this.#tally.groupFinished(staleness);
    this.#ready.push(group);
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  /** Attempts that an earlier start finished are read back, so that the group is whole. */
  async #withEarlier(open: OpenGroup, episodes: readonly Episode[]): Promise<readonly Episode[]> {
    const { folder } = this.#options;
    if (open.earlier.length === 0 || folder === undefined) return episodes;
    const earlier = await folder.readEpisodes(
      new Set(open.earlier.map(({ rolloutId }) => rolloutId)),
    );
    return [...earlier, ...episodes].toSorted((one, other) => one.sampleIndex - other.sampleIndex);
  }
}

/** A source may be anyone's. */
function callSource(source: TaskSource, group: EpisodeGroup): void {
  try {
    source.told?.(group);
  } catch (cause) {
    throw new UsageError(
      `Cannot tell the source of tasks about ${group.groupId}: ${describeError(cause)}`,
      { cause },
    );
  }
}

function requireBranching(
  branchAt: readonly number[],
  { agent, environment, play, user }: StartRunOptions["setup"],
): void {
  if (branchAt.length === 0) return;
  for (const turnIndex of branchAt) {
    if (Number.isSafeInteger(turnIndex) && turnIndex >= 0) continue;
    throw new UsageError(
      `Cannot branch at turn ${turnIndex}: expected a whole number of at least 0`,
    );
  }
  if (play !== undefined) {
    throw new UsageError(
      `Cannot branch: the agent ${agent.strategy} keeps its conversations itself, and nothing brings ` +
        "it back to a turn",
    );
  }
  if (environment.repeatable === true && user.repeatable === true) return;
  throw new UsageError(
    `Cannot branch: the environment ${environment.name} and the user ${user.strategy} must be ` +
      "repeatable, so that their part of the conversation can be brought back (see `repeatable`)",
  );
}

function requireCounts(counts: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new UsageError(
      `Cannot start a run: ${name} is ${value}, expected a number of at least 1`,
    );
  }
}

export type { FinishedEpisode };
