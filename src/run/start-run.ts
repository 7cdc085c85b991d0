import { setMaxListeners } from "node:events";
import type { Episode } from "../episode/episode.ts";
import { describeError, UsageError } from "../errors.ts";
import { createAbortController } from "../async/abort-controller.ts";
import { measuring, systemClock, type Clock } from "../async/clock.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { takeTurn } from "../async/take-turn.ts";
import type { SlimeAttempt, SlimeSummary } from "./slime/slime-file.ts";
import type { Task } from "../task.ts";
import { admitTo } from "./schedule/admit-to.ts";
import type { RecordedGroups } from "./folder/started-groups.ts";
import { Branches } from "./schedule/branches.ts";
import { episodeEvent, playAttempts } from "./schedule/play-attempts.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import {
  GroupLedger,
  type AttemptJob,
  type OpenGroup,
  type CompletedGroup,
} from "./schedule/group-ledger.ts";
import { newSamplingFacts, ownSamplingFacts } from "./policy/found-sampling.ts";
import { guardPlayer } from "./schedule/guard-player.ts";
import { GroupDelivery } from "./schedule/group-delivery.ts";
import { JobScheduler } from "./schedule/job-scheduler.ts";
import { Listeners } from "./schedule/listeners.ts";
import type { LiveRun, RunResult } from "./live-run.ts";
import { markVersions } from "./policy/mark-versions.ts";
import { fromTaskRecord, redrawTask, type TaskRecord } from "./folder/task-record.ts";
import { PolicyGate, type UpdateMode } from "./policy/policy-gate.ts";
import type { PlanRecord } from "./schedule/plan-run.ts";
import { endByPlan, isPlanned, mayBePlanned, openPlan, planIn } from "./schedule/planned-run.ts";
import { withPromptTime } from "./prompt-time.ts";
import type { RecordingJournal } from "./recording/recording-journal.ts";
import { describeLostTask } from "./recording/recording-line.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import { RunTally, type RunProgress } from "./run-progress.ts";
import { requireSameGroup } from "./folder/same-groups.ts";
import { PolicyVersions, requireVersion } from "./policy/staleness.ts";
import { checkRunOptions, type StartRunOptions } from "./start-run-options.ts";
import { eventsFile, startedType, type RecordedGrouping } from "./folder/episode-events.ts";
import { sharedPrefixOf } from "./schedule/shared-prefix.ts";

/**
 * Starts a run: plays groups of attempts at the tasks of a source, a bounded number at once, and hands out
 * each group as it ends. Where it is written to a folder, an episode is on the disk before anybody is told
 * of it, and a run that was stopped in any way goes on in the middle of its episodes. Whoever stops
 * iterating stops the run.
 *
 * The iteration ends alike behind the last group and where the run was stopped, also by failures in a row
 * (`maxFailuresInRow`): `result.end` says which it was.
 *
 * The iteration and `result` throw UsageError where the disk refuses an episode, and whatever
 * `playEpisode()` throws on our own bugs, after the other episodes were stopped.
 */
export function startRun(options: StartRunOptions): LiveRun {
  return new GroupRun(options);
}

class GroupRun implements LiveRun {
  readonly #options: StartRunOptions;
  readonly #stop = createAbortController();
  readonly #interruption = createAbortController();
  readonly #gate: PolicyGate;
  /** With the gate in front of the engine. */
  readonly #setup: StartRunOptions["setup"];
  readonly #versions: PolicyVersions;
  readonly #tally: RunTally;
  /** Attempts of the groups that the source gives; absent where nobody knows how many there are. */
  readonly #ownCount: number | undefined;
  readonly #book: GroupLedger;
  readonly #outlet: GroupDelivery;
  readonly #desk: JobScheduler;
  readonly #branches: Branches;
  readonly #listeners: Listeners;
  readonly #clock: Clock;
  readonly result: Promise<RunResult>;
  #recording: RecordingJournal | undefined;
  /** What `run.json` says was planned, as long as that is what is played. */
  #plan: PlanRecord | undefined;
  /** The writing of `run.json` that leaves the plan. */
  #leaving: Promise<void> | undefined;
  /** Writes what the run came to, once it has ended: groups that wait then may still be left out. */
  #summarise: (() => Promise<void>) | undefined;
  /** What failed since an episode ended otherwise: rollouts where the engine did, else places of groups. */
  readonly #failedInRow = new Set<string | number>();
  /** Why nothing is begun any more, by what stopped the run first; absent where nothing did. */
  #stoppedAs: Exclude<RunResult["end"], "finished"> | undefined;
  #isPaused = false;
  /** Updates of the policy that are under way. */
  #updateCount = 0;
  /** An update failed, and nobody has said since that the weights are sound. */
  #mayBeHalfUpdated = false;
  #crash: { readonly error: unknown } | undefined;

  constructor(options: StartRunOptions) {
    const { folder, grouping, player, seed = 0, setup, source } = options;
    checkRunOptions(options);
    const { size, begun = size, branchAt = [] } = grouping;
    this.#clock = setup.clock ?? systemClock;
    const versions = new PolicyVersions(options.staleness, (problem) =>
      process.emitWarning(problem),
    );
    this.#versions = versions;
    const announced = () => ({ version: versions.announced, overrules: false });
    this.#gate = new PolicyGate(markVersions(setup.engine, announced), {
      graceMs: setup.limits.graceTimeoutMs,
      announcedVersion: () => versions.announced,
      clock: this.#clock,
    });
    const gated = { ...setup, engine: this.#gate.engine };
    this.#setup = withPromptTime(gated, folder?.manifest.promptTime);
    // With more attempts than are needed, nobody knows how many will come to their end.
    const isKnown = source.length !== undefined && begun === size;
    const now = measuring(setup.now, this.#clock);
    this.#branches = new Branches(branchAt, folder);
    this.#book = new GroupLedger({
      source,
      size,
      begun,
      seed,
      finished: folder?.finished ?? [],
      lost: folder?.lost ?? [],
      isBranching: this.#branches.areAny,
    });
    this.#tally = new RunTally({ now });
    this.#ownCount = isKnown ? source.length * size : undefined;
    this.#tellPlanned();
    const [book, tally] = [this.#book, this.#tally];
    const onRoom = (): void => this.#desk.lookAgain();
    const onWithdrawn = async (): Promise<void> => await this.#summarise?.();
    this.#listeners = new Listeners({
      signal: this.#stop.signal,
      onFailure: (error) => this.#fail(error),
      clock: this.#clock,
    });
    this.#options = {
      ...options,
      ...(player && { player: guardPlayer(player, this.#listeners) }),
    };
    this.#outlet = new GroupDelivery({
      ...options,
      versions,
      tally,
      onRoom,
      onWithdrawn,
      listeners: this.#listeners,
    });
    this.#desk = new JobScheduler({ ...options, book, outlet: this.#outlet, versions });
    // Each running episode listens to them.
    setMaxListeners(0, this.#stop.signal, this.#interruption.signal);
    for (const { signal } of [this.#stop, this.#interruption]) {
      signal.addEventListener("abort", () => this.#close("interrupted"), { once: true });
    }
    folder?.claimRun();
    this.result = this.#run();
    // Whoever iterates is told there.
    this.result.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<EpisodeGroup> {
    try {
      yield* this.#outlet.take();
    } finally {
      if (!this.#outlet.hasEnded) {
        this.#stop.abort(new DOMException("the run was left", "AbortError"));
      }
      await this.result;
    }
  }

  progress(): RunProgress {
    return this.#tally.progress();
  }

  announcePolicy(version: number): void {
    this.#versions.announce(version, this.#outlet);
    try {
      this.#options.player?.announcePolicy?.(version);
    } finally {
      // The version counts, whether or not the player could be told of it.
      this.#desk.lookAgain();
    }
  }

  async updatePolicy(
    version: number,
    update: () => Promise<void>,
    mode: UpdateMode = "hold",
  ): Promise<void> {
    requireVersion(version);
    this.#updateCount += 1;
    try {
      await this.#closeGates(mode);
      await this.#tryUpdate(version, update, mode);
      this.announcePolicy(version);
    } finally {
      this.#updateCount -= 1;
      this.#openGate();
    }
  }

  /** Keeps the gates closed behind an update that fails: nobody knows what the weights are then. */
  async #tryUpdate(version: number, update: () => Promise<void>, mode: UpdateMode): Promise<void> {
    try {
      await update();
      this.#mayBeHalfUpdated = false;
    } catch (cause) {
      this.#mayBeHalfUpdated = true;
      // Where the engine was to sort it out they are still open.
      if (mode === "finish") this.#closeGates("hold").catch(() => {});
      throw new UsageError(
        `Cannot update the policy to version ${version}: ${describeError(cause)}; nothing is sampled until ` +
          "resume(), or an update that succeeds",
        { cause },
      );
    }
  }

  async pause(mode: Exclude<UpdateMode, "finish"> = "hold"): Promise<void> {
    this.#isPaused = true;
    await this.#closeGates(mode);
  }

  resume(): void {
    this.#isPaused = false;
    this.#mayBeHalfUpdated = false;
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
    const isHeld = this.#isPaused || this.#mayBeHalfUpdated || this.#updateCount > 0;
    if (!isHeld) this.#openGates();
  }

  interrupt(): Promise<RunResult> {
    // Whoever waits for the policy ends with what there is: it stays as it is.
    this.#interruption.abort();
    // Not another promise: whoever does not wait for this one is told where the run is iterated.
    return this.result;
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
      this.#outlet.end();
    }
  }

  async #playAll(): Promise<RunResult> {
    const { admission, folder, redactor, setup } = this.#options;
    for (const row of this.#book.finishedBefore) this.#tally.episodeResumed(row);
    await this.#takeUp();
    if (!this.#book.isAllFinished) await folder?.results.remove();
    if (folder !== undefined) await this.#completeFound(folder);
    await this.#holdPlan();
    await folder?.writeEvent(this.#startEvent(folder));
    await using recording = await folder?.recordings.open({
      clock: this.#clock,
      ...(setup.clock === undefined && { diskClock: systemClock }),
      ...(redactor && { redactor }),
      onFailure: (error) => this.#fail(error),
    });
    this.#recording = recording;
    const workers = Array.from({ length: this.#workerCount(admission.concurrency) }, () =>
      this.#work(),
    );
    await Promise.all(workers);
    await this.#desk.settle().catch((error: unknown) => this.#fail(error));
    await this.#listeners.settle();
    await recording?.flush();
    if (this.#crash !== undefined) throw this.#crash.error;
    const end = this.#end();
    const slime = await this.#finishFiles(end);
    const progress = this.#tally.progress();
    return { progress, end, ...(slime && { slime }) };
  }

  /** Where the source has an end: its attempts, and what earlier starts played or began beyond what it gives now. */
  #tellPlanned(): void {
    if (this.#ownCount !== undefined) this.#tally.plan(this.#ownCount + this.#book.furtherCount);
  }

  /** Adds to `run.json` what its readers ask for and whoever opened the folder did not say. */
  async #completeFound(folder: RunFolder): Promise<void> {
    const { vocabularySize } = this.#setup.renderer.codec;
    const known = { plan: openPlan, vocabularySize };
    // What is there was drawn as an earlier start said.
    if (await folder.holdsSampled()) {
      await folder.completeFound(known);
      return;
    }
    const own = ownSamplingFacts(folder.requestedFound);
    const told = { ...folder.manifest.found, ...own };
    // What others play is drawn as they see fit.
    const isSeen = this.#options.player === undefined;
    const seen = isSeen ? await newSamplingFacts(told, this.#setup, this.#desk.closing) : {};
    await folder.completeFound(known, { ...own, ...seen });
  }

  /**
   * Goes on with the groups that earlier starts began, and hands out those that nobody took; of a source that is to
   * give them again, once it is known that it does.
   */
  async #takeUp(): Promise<void> {
    const { folder, redeliver = false, source } = this.#options;
    if (folder === undefined) return;
    if (source.repeatable === true && !redeliver) {
      await this.#holdEarlier(folder, new Set());
      return;
    }
    const told = await folder.readGroups();
    const { begun, finished, leftOut, taken } = told;
    this.#warnOfLostEvents(told);
    const recall = (noted: TaskRecord): Task => fromTaskRecord(noted, this.#setup.environment);
    const wholeBefore = redeliver ? this.#book.wholeBefore : [];
    const untaken = wholeBefore.filter(
      ({ groupIndex }) => !taken.has(groupIndex) && !leftOut.has(groupIndex),
    );
    const wanted = new Set(untaken.map(({ groupIndex }) => groupIndex));
    // Nothing goes on or is handed out where one of these is not there any more.
    const notedAs = begun.filter(({ groupIndex }) => wanted.has(groupIndex));
    const tasks = new Map(notedAs.map((noted) => [noted.groupIndex, recall(noted)]));
    const ids = untaken.flatMap(({ rows }) => rows.map(({ rolloutId }) => rolloutId));
    const found = await folder.readEpisodes(new Set(ids));
    const byGroup = this.#byGroup(untaken, found);
    for (const [groupIndex, episodes] of byGroup) {
      const task = tasks.get(groupIndex) ?? (await this.#taskOf(episodes[0]!, folder));
      if (task === undefined) continue;
      tasks.set(groupIndex, task);
      if (source.onGroupEnd !== undefined) wanted.delete(groupIndex);
    }
    if (source.repeatable === true && redeliver) this.#warnOfWaits(wanted.size, taken);
    if (source.repeatable === true) await this.#holdEarlier(folder, wanted);
    else this.#outlet.offeredCount += await this.#book.reopen(begun, recall);
    this.#tellPlanned();
    if (!redeliver) return;
    this.#outlet.takenBefore = taken;
    await this.#recallVersions(found, this.#versions.isBounded);
    for (const [groupIndex, episodes] of byGroup) {
      const known = tasks.get(groupIndex);
      const sourced = known === undefined ? await this.#desk.askAgain(groupIndex) : undefined;
      const task = known ?? sourced?.task;
      // The next start hands them out.
      if (task === undefined) return;
      if (sourced !== undefined) {
        const { groupId = sourced.task.id } = sourced;
        requireSameGroup(groupId, { groupIndex, earlier: episodes });
      }
      const ordered = inOrder(episodes);
      this.#outlet.offeredCount += 1;
      const group = { groupId: ordered[0]!.groupId, groupIndex, task, episodes: ordered };
      if (finished.has(groupIndex)) this.#outlet.hand(group);
      // The stop came before anybody was told that it had ended.
      else await this.#outlet.conclude(group);
    }
  }

  /** What only `events.jsonl` tells of may be lost with it, or with lines of it. */
  #warnOfLostEvents({ damagedCount, isAnyStart }: RecordedGroups): void {
    const isGone = !isAnyStart && this.#book.finishedBefore.length > 0;
    if (!isGone && damagedCount === 0) return;
    const what = isGone
      ? "says nothing of the starts that played what is there, as where it was deleted or emptied"
      : `has lines that cannot be read (${damagedCount})`;
    process.emitWarning(
      `The run's ${eventsFile} ${what}: groups that were taken may be handed out again, and groups whose tasks the ` +
        "source does not give again are not gone on with",
    );
  }

  /** A source that gives no groups before others have ended may be asked for some of which it is not told. */
  #warnOfWaits(wantedCount: number, taken: ReadonlySet<number>): void {
    if (this.#options.source.onGroupEnd === undefined) return;
    if (wantedCount > 0) {
      process.emitWarning(
        `The source of tasks is asked once more for groups that have ended (${wantedCount}), before any is played: ` +
          "nothing recorded says which tasks these are of. One that gives no others until onGroupEnd() reports groups " +
          "that end waits for ever; record all that is played (--record all), or start without redeliver",
      );
    }
    const openCount = [...taken].filter((groupIndex) => !this.#book.hasEnded(groupIndex)).length;
    if (openCount > 0) {
      process.emitWarning(
        `The source of tasks is asked once more for groups that were taken (${openCount}), as attempts of them are ` +
          "played again, and onGroupEnd() is not called for these a second time. One that gives no others before it is waits " +
          "for ever; start without redeliver, or play no failed attempts again",
      );
    }
  }

  /**
   * The task of an episode whose group has ended, without its source: one that is not repeatable would give the task of
   * a group that is still to come, and one that is told of groups may wait for some to end that nobody plays yet.
   *
   * @returns nothing where the source is to be asked.
   * @throws UsageError as `redrawTask()` does.
   */
  async #taskOf(episode: Episode, folder: RunFolder): Promise<Task | undefined> {
    const { source } = this.#options;
    const { repeatable = false } = source;
    if (repeatable && source.onGroupEnd === undefined) return undefined;
    const { begin } = (await folder.recordings.read(episode.rolloutId)) ?? {};
    const lost = begin && describeLostTask(begin);
    if (repeatable && (begin === undefined || lost !== undefined)) return undefined;
    const { environment } = this.#setup;
    return redrawTask(episode, {
      environment,
      ...withoutUndefined({ recorded: begin?.ownTask?.task, lost }),
    });
  }

  /**
   * Takes note of the versions of what was read back. Which one this start began with is not among them: the engine is
   * asked, before anybody takes a group and trains on it.
   *
   * @param mayAsk - Whether it is worth asking.
   */
  async #recallVersions(episodes: readonly Episode[], mayAsk: boolean): Promise<void> {
    this.#versions.recall(episodes);
    const isChanging = this.#updateCount > 0;
    if (episodes.length > 0 && mayAsk && !isChanging) {
      await this.#desk.askVersion();
    }
  }

  /** Holds what earlier starts left against the source; see `JobDesk.holdEarlier()`. */
  async #holdEarlier(folder: RunFolder, wanted: ReadonlySet<number>): Promise<void> {
    const begun = this.#book.isAllFinished ? [] : await folder.recordings.readStarted();
    await this.#desk.holdEarlier(begun, wanted);
  }

  /** The episodes of groups that have ended: of each those that made it whole, for some may have ended later. */
  #byGroup(
    groups: readonly CompletedGroup[],
    found: readonly Episode[],
  ): ReadonlyMap<number, readonly Episode[]> {
    const lists = groups.map(({ groupIndex }): [number, Episode[]] => [groupIndex, []]);
    const listOf = new Map<string, Episode[]>();
    for (const [place, { rows }] of groups.entries()) {
      for (const { rolloutId } of rows) listOf.set(rolloutId, lists[place]![1]);
    }
    for (const episode of found) listOf.get(episode.rolloutId)!.push(episode);
    return new Map(lists.map(([index, episodes]) => [index, this.#book.firstWhole(episodes)]));
  }

  #workerCount(concurrency: number): number {
    const { source, grouping } = this.#options;
    const { size, begun = size } = grouping;
    // Groups that an earlier start left open go on, also where this source has fewer.
    const groupCount = Math.max(source.length ?? Infinity, this.#outlet.offeredCount);
    return Math.min(concurrency, groupCount * begun);
  }

  /** Whoever gives the tasks says what is planned: a folder may be one that was opened for others. */
  async #holdPlan(): Promise<void> {
    const { folder } = this.#options;
    if (folder === undefined) return;
    this.#plan = planIn(folder.manifest);
    if (this.#plan && !mayBePlanned(this.#plan, this.#options, folder)) await this.#leavePlan();
  }

  /** Says in `run.json` that nobody knows which episodes there will be. */
  async #leavePlan(): Promise<void> {
    this.#plan = undefined;
    this.#leaving = this.#options.folder?.updateFound({ plan: openPlan });
    await this.#leaving;
  }

  /** What is not planned is played once `run.json` says so, and so is whatever comes meanwhile. */
  async #holdAgainstPlan(group: OpenGroup): Promise<void> {
    if (this.#plan && !isPlanned(this.#plan, group)) await this.#leavePlan();
    else await this.#leaving;
  }

  /** Puts the files of a run in order that comes to its end or stops. */
  async #finishFiles(end: RunResult["end"]): Promise<SlimeSummary | undefined> {
    const { folder, grouping, setup } = this.#options;
    if (folder === undefined) return undefined;
    const ids = this.#book.rolloutIds;
    if (end === "finished") await folder.sortSamples(Array.from(ids, (id = "") => id));
    const slime = await this.#writeSlime(folder);
    await folder.recordings.prune((rolloutId) => this.#book.howEnded(rolloutId));
    const { end: toldEnd, ...planned } = this.#plan
      ? endByPlan(this.#plan, { end, grouping, book: this.#book })
      : { end };
    await folder.writeEvent({ type: "run-ended", atMs: setup.now(), end: toldEnd });
    const { elapsedMs, sampledTokensPerSecond } = this.#tally.progress();
    const atEnd = { elapsedMs, sampledTokensPerSecond };
    let written = Promise.resolve();
    this.#summarise = async () => {
      // One after the other: what was counted last stands there last, also behind a write that was refused.
      written = written
        .catch(() => {})
        .then(async () => {
          const progress = { ...this.#tally.progress(), ...planned, ...atEnd };
          await folder.writeSummary({ end: toldEnd, ...progress, ...(slime && { slime }) });
        });
      await written;
    };
    await this.#summarise();
    return slime;
  }

  /** Writes the slime file, where one is asked for. What was not begun costs nothing, however much was planned. */
  async #writeSlime(folder: RunFolder): Promise<SlimeSummary | undefined> {
    if (folder.slimeFile === undefined) return undefined;
    const { size, begun = size } = this.#options.grouping;
    const { rolloutIds, unbegunCount } = this.#book;
    // An attempt that was not begun has no id, as it has no rows.
    const attempts: readonly SlimeAttempt[] = Array.from(rolloutIds, (rolloutId = "", index) => ({
      rolloutId,
      index,
      groupIndex: Math.floor(index / begun),
    }));
    return await folder.writeSlime(attempts, { size, unbegunCount });
  }

  /** Says what is played, so that the folder can be used even if its `run.json` is lost. */
  #startEvent(folder: RunFolder) {
    const { found: _found, ...manifest } = folder.manifest;
    const { planned, resumed } = this.#tally.progress();
    const { grouping, setup } = this.#options;
    const { size, begun = size, branchAt = [] } = grouping;
    const told = { size, begun, branchAt } satisfies RecordedGrouping;
    return { type: startedType, atMs: setup.now(), planned, resumed, ...told, manifest };
  }

  #end(): RunResult["end"] {
    if (this.#book.isAllFinished) return "finished";
    return this.#stoppedAs ?? "interrupted";
  }

  /** Begins nothing any more. Why is noted here alone: what is still played comes to its end, and is counted. */
  #close(why: Exclude<RunResult["end"], "finished">): void {
    this.#stoppedAs ??= why;
    this.#desk.close();
  }

  #fail(error: unknown): void {
    this.#crash ??= { error };
    this.#stop.abort(error);
  }

  /** Plays one attempt after the other until none is left or the run stops. */
  async #work(): Promise<void> {
    while (!this.#desk.isClosed) {
      try {
        await takeTurn();
        const job = await this.#desk.next();
        if (job === undefined) return;
        await this.#admitAndPlay(job);
      } catch (error) {
        this.#failBy(error);
        return;
      }
    }
  }

  /** What was thrown ends the run, unless it is what the run was stopped by. */
  #failBy(error: unknown): void {
    const { signal } = this.#stop;
    if (!signal.aborted || error !== signal.reason) this.#fail(error);
  }

  async #admitAndPlay(job: AttemptJob): Promise<void> {
    const { gate } = this.#options.admission;
    const { rolloutId } = job.assignment;
    const { groupIndex } = job.group;
    const place =
      gate &&
      (await this.#listeners.ask(`ask admission.gate for a place for ${rolloutId}`, () =>
        admitTo(gate, groupIndex, this.#desk.closing),
      ));
    if (place === "closed") return;
    try {
      await this.#playAndRecord(job);
    } finally {
      this.#listeners.call(`give the place of ${rolloutId} back to admission.gate`, () =>
        place?.(),
      );
    }
  }

  async #playAndRecord(job: AttemptJob): Promise<void> {
    const { folder, setup, grouping, redactor, redeliver, player, onEpisode } = this.#options;
    const tally = this.#tally;
    const isOver = (): boolean => job.group.isWhole || this.#desk.isClosed;
    if (isOver()) return;
    await this.#holdAgainstPlan(job.group);
    // Others may have ended while that was written.
    if (isOver()) return;
    tally.episodeStarted();
    this.#tellProgress();
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
        onProgress: () => this.#tellProgress(),
      });
      if (played === undefined || played.episode.outcome === "aborted") return;
      const { episode, recordedCount, close } = played;
      const hasSampled = episode.turns.length > recordedCount;
      if (hasSampled) this.#versions.see(episode, recordedCount, this.#outlet);
      else {
        const isWaiting = redeliver === true && this.#versions.isBounded;
        await this.#recallVersions([episode], isWaiting || this.#versions.lacksFirst);
      }
      this.#desk.lookAgain();
      // Whatever is finished can be replayed: its last inputs are not left to the next moment's write, and where
      // the disk refuses them it is not finished.
      await this.#recording?.land(tally.running);
      const episodeHash = await folder?.writeEpisode(episode);
      close();
      tally.episodeFinished(episode);
      isCounted = true;
      if (played.inputs !== undefined) job.group.trunk = sharedPrefixOf(episode, played.inputs);
      // At once, so that those make a group whole that the file has first, as for a later start.
      const whole = this.#book.add(job.group, episode);
      if (whole !== undefined) this.#outlet.endedCount += 1;
      const event = episodeEvent("episode-finished", episode, setup.now());
      await folder?.writeEvent({ ...event, episodeHash });
      this.#countFailure(job.group, episode);
      this.#listeners.call(`tell onEpisode of ${episode.rolloutId}`, () =>
        this.#outlet.tell(() => onEpisode?.(episode)),
      );
      if (whole !== undefined) await this.#conclude(job.group, whole);
    } catch (error) {
      // Before others are told below: they may throw as well, and the run ends by what came first.
      this.#failBy(error);
      throw error;
    } finally {
      if (!isCounted) tally.episodeLeft();
      this.#tellProgress();
    }
  }

  #tellProgress(): void {
    const { onProgress } = this.#options;
    this.#listeners.call("tell onProgress how far the run is", () =>
      onProgress?.(this.#tally.progress()),
    );
  }

  #countFailure({ groupIndex }: OpenGroup, { failure, outcome, rolloutId }: Episode): void {
    const { maxFailuresInRow = 20 } = this.#options;
    if (maxFailuresInRow === Infinity) return;
    if (outcome !== "failed") this.#failedInRow.clear();
    // An engine that is down fails whoever asks it. Any other failure may be of one task, and of each attempt at it.
    else this.#failedInRow.add(failure?.party === "engine" ? rolloutId : groupIndex);
    if (this.#failedInRow.size < maxFailuresInRow) return;
    this.#close("too-many-failures");
    this.#stop.abort(new DOMException("too many episodes failed in a row", "AbortError"));
  }

  async #conclude(open: OpenGroup, group: EpisodeGroup): Promise<void> {
    const episodes = await this.#withEarlier(open, group.episodes);
    await this.#outlet.conclude({ ...group, episodes });
  }

  /** Attempts that an earlier start finished are read back, so that the group is whole. */
  async #withEarlier(open: OpenGroup, episodes: readonly Episode[]): Promise<readonly Episode[]> {
    const { folder } = this.#options;
    if (open.earlier.length === 0 || folder === undefined) return episodes;
    const earlier = await folder.readEpisodes(
      new Set(open.earlier.map(({ rolloutId }) => rolloutId)),
    );
    // Where it was whole without what was brought back, they may be more than it takes.
    if (this.#book.isWhole(earlier)) return inOrder(this.#book.firstWhole(earlier));
    return inOrder([...earlier, ...episodes]);
  }
}

function inOrder(episodes: readonly Episode[]): readonly Episode[] {
  return episodes.toSorted((one, other) => one.sampleIndex - other.sampleIndex);
}
