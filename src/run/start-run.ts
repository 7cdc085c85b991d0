import { measuring, systemClock, type Clock } from "../async/clock.ts";
import { Branches } from "./attempt/branches.ts";
import type { ColumnStore } from "../columns/column-store.ts";
import { bringColumns } from "./columns/bring-columns.ts";
import type { ColumnWriter } from "./columns/column-writer.ts";
import { AttemptWorkers } from "./attempt/attempt-workers.ts";
import { EarlierGroups } from "./schedule/earlier-groups.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import { GroupLedger } from "./schedule/group-ledger.ts";
import { guardPlayer } from "./attempt/guard-player.ts";
import { GroupDelivery } from "./schedule/group-delivery.ts";
import { JobScheduler } from "./schedule/job-scheduler.ts";
import { Listeners } from "./schedule/listeners.ts";
import { PlannedRun } from "./schedule/planned-run.ts";
import type { Fork } from "./schedule/task-source.ts";
import type { RecordingJournal } from "./recording/recording-journal.ts";
import type { LiveRun, RunResult } from "./live-run.ts";
import { markVersions } from "./policy/mark-versions.ts";
import { PolicyControl } from "./policy/policy-control.ts";
import { PolicyGate, type UpdateMode } from "./policy/policy-gate.ts";
import { PolicyVersions } from "./policy/staleness.ts";
import { withPromptTime } from "./prompt-time.ts";
import { RunFiles } from "./run-files.ts";
import { RunTally, type RunProgress } from "./run-progress.ts";
import { RunStop } from "./run-stop.ts";
import { checkRunOptions, type StartRunOptions } from "./start-run-options.ts";
import { groupingCounts } from "./schedule/attempt-counts.ts";

/**
 * Starts a run: plays groups of attempts at the tasks of a source, a bounded number at the same time, and delivers each
 * group when it ends. If the run has a folder, an episode is synced before it is reported, and the next start resumes a
 * stopped run in the middle of its episodes. Ending the iteration early stops the run.
 *
 * The iteration ends after the last group, and also when the run was stopped, for example by too many failures in a row
 * (`maxFailuresInRow`). `result.end` names the reason.
 *
 * The iteration and `result` throw a UsageError if the disk fails, and pass on an `AssertionError` that `playEpisode()`
 * throws, after the other episodes were stopped.
 */
export function startRun(options: StartRunOptions): LiveRun {
  return new GroupRun(options);
}

/** Creates the parts of a run and connects them. */
class GroupRun implements LiveRun {
  readonly #options: StartRunOptions;
  /** The caller's setup, with the policy gate in front of its engine. */
  readonly #setup: StartRunOptions["setup"];
  readonly #clock: Clock;
  readonly #stop: RunStop;
  readonly #tally: RunTally;
  readonly #versions: PolicyVersions;
  readonly #branches: Branches;
  readonly #ledger: GroupLedger;
  readonly #listeners: Listeners;
  readonly #delivery: GroupDelivery;
  readonly #scheduler: JobScheduler;
  readonly #policy: PolicyControl;
  readonly #earlier: EarlierGroups;
  readonly #files: RunFiles | undefined;
  /** The files of side columns. `undefined` until the run plays, and in runs without a folder or columns. */
  #columns: ColumnWriter | undefined;
  readonly result: Promise<RunResult>;

  constructor(options: StartRunOptions) {
    checkRunOptions(options);
    const { folder, grouping, player, seed = 0, setup, source } = options;
    const { branchAt = [] } = grouping;
    const { size, started } = groupingCounts(grouping);
    this.#clock = setup.clock ?? systemClock;
    this.#stop = new RunStop(() => this.#scheduler.close());
    const stop = this.#stop;
    const versions = new PolicyVersions(options.staleness, (problem) =>
      process.emitWarning(problem),
    );
    this.#versions = versions;
    const gate = gateOf(setup, versions, this.#clock);
    this.#setup = withPromptTime({ ...setup, engine: gate.engine }, folder?.manifest.promptTime);
    this.#tally = new RunTally({ now: measuring(setup.now, this.#clock) });
    this.#branches = new Branches(branchAt, folder);
    this.#ledger = new GroupLedger({
      source,
      size,
      started,
      seed,
      finished: folder?.finished ?? [],
      lost: folder?.lost ?? [],
      isBranching: this.#branches.areAny,
    });
    this.#listeners = new Listeners({
      signal: stop.signal,
      onFailure: (error) => stop.fail(error),
      clock: this.#clock,
    });
    const [ledger, listeners, tally] = [this.#ledger, this.#listeners, this.#tally];
    const guarded = player && guardPlayer(player, listeners);
    this.#options = { ...options, ...(guarded && { player: guarded }) };
    this.#countPlanned();
    this.#delivery = new GroupDelivery({
      ...options,
      versions,
      tally,
      listeners,
      onRoom: () => this.#scheduler.lookAgain(),
      onWithdrawn: async () => await this.#files?.updateSummary(),
    });
    const delivery = this.#delivery;
    const bringing = async (fork: Fork): Promise<void> => await this.#bringColumns(fork);
    this.#scheduler = new JobScheduler({
      ...options,
      ledger,
      delivery,
      versions,
      bringColumns: bringing,
    });
    const scheduler = this.#scheduler;
    this.#policy = new PolicyControl({
      gate,
      versions,
      player: guarded,
      groups: delivery,
      onVersion: () => scheduler.lookAgain(),
      askVersion: async () => await scheduler.askVersion(),
    });
    this.#earlier = new EarlierGroups({
      ...options,
      ledger,
      delivery,
      scheduler,
      policy: this.#policy,
      onReopened: () => this.#countPlanned(),
    });
    this.#files =
      folder && new RunFiles({ ...this.#options, setup: this.#setup, folder, ledger, tally });
    folder?.claimRun();
    this.result = this.#run();
    // A rejection also ends the iteration, and must not be reported as unhandled.
    this.result.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<EpisodeGroup> {
    try {
      yield* this.#delivery.take();
    } finally {
      if (!this.#delivery.hasEnded) {
        this.#stop.stop(new DOMException("the run was left", "AbortError"));
      }
      await this.result;
    }
  }

  progress(): RunProgress {
    return this.#tally.progress();
  }

  announcePolicy(version: number): void {
    this.#policy.announce(version);
  }

  async updatePolicy(
    version: number,
    update: () => Promise<void>,
    mode: UpdateMode = "hold",
  ): Promise<void> {
    await this.#policy.update(version, update, mode);
  }

  async pause(mode: Exclude<UpdateMode, "finish"> = "hold"): Promise<void> {
    await this.#policy.pause(mode);
  }

  resume(): void {
    this.#policy.resume();
  }

  interrupt(): Promise<RunResult> {
    // Episodes that wait at the policy gate end too. The gate stays closed.
    this.#stop.interrupt();
    // Not a new promise: if the caller does not await it, its rejection would be reported as unhandled.
    return this.result;
  }

  async #run(): Promise<RunResult> {
    const { signal } = this.#options;
    const forward = (): void => this.#stop.stop(signal?.reason);
    if (signal?.aborted) forward();
    signal?.addEventListener("abort", forward, { once: true });
    try {
      return await this.#playAll();
    } finally {
      signal?.removeEventListener("abort", forward);
      this.#delivery.end();
    }
  }

  async #playAll(): Promise<RunResult> {
    const { folder, redactor, setup } = this.#options;
    const [files, stop] = [this.#files, this.#stop];
    for (const row of this.#ledger.finishedBefore) this.#tally.episodeResumed(row);
    await this.#earlier.resume();
    await files?.start(this.#scheduler.closing);
    const planned = await PlannedRun.open(this.#options);
    await files?.writeStartEvent();
    const columns = this.#setup.columns && (await folder?.openColumns());
    this.#columns = columns;
    await using recording = await folder?.recordings.open({
      clock: this.#clock,
      ...(setup.clock === undefined && { diskClock: systemClock }),
      ...(redactor && { redactor }),
      ...(columns && { syncColumns: () => columns.flush() }),
      onFailure: (error) => stop.fail(error),
    });
    await this.#workers(planned, recording, columns).play(this.#workerCount());
    await this.#scheduler.settle().catch((error: unknown) => stop.fail(error));
    await this.#listeners.settle();
    await recording?.flush();
    if (stop.crash !== undefined) throw stop.crash.error;
    const end = this.#ledger.isAllFinished ? "finished" : stop.reason;
    const slime = await files?.finish(end, planned);
    return { progress: this.#tally.progress(), end, ...(slime && { slime }) };
  }

  /** Copies the side columns of the turns that a group of forks shares with another attempt. */
  async #bringColumns(fork: Fork): Promise<void> {
    const { columns: specs = {} } = this.#setup;
    await bringColumns(fork, { specs, writer: this.#columns });
  }

  #workers(
    planned: PlannedRun,
    recording: RecordingJournal | undefined,
    columnStore: ColumnStore | undefined,
  ): AttemptWorkers {
    return new AttemptWorkers({
      run: this.#options,
      setup: { ...this.#setup, ...(columnStore && { columnStore }) },
      branches: this.#branches,
      delivery: this.#delivery,
      earlier: this.#earlier,
      ledger: this.#ledger,
      listeners: this.#listeners,
      planned,
      policy: this.#policy,
      recording,
      scheduler: this.#scheduler,
      stop: this.#stop,
      tally: this.#tally,
      versions: this.#versions,
    });
  }

  /** Sets the number of planned episodes, unless the source has no length or groups are over-sampled. */
  #countPlanned(): void {
    const { source, grouping } = this.#options;
    const { size, started } = groupingCounts(grouping);
    if (source.length === undefined || started !== size) return;
    this.#tally.plan(source.length * size + this.#ledger.furtherCount);
  }

  #workerCount(): number {
    const { admission, source, grouping } = this.#options;
    const { started } = groupingCounts(grouping);
    // Resumed groups count too, even if the source is shorter now.
    const groupCount = Math.max(source.length ?? Infinity, this.#delivery.offeredCount);
    return Math.min(admission.concurrency, groupCount * started);
  }
}

/** Wraps the engine: its tokens are marked with announced versions, and a gate can block its calls. */
function gateOf(
  { engine, limits }: StartRunOptions["setup"],
  versions: PolicyVersions,
  clock: Clock,
): PolicyGate {
  const announced = () => ({ version: versions.announced, overrules: false });
  return new PolicyGate(markVersions(engine, announced), {
    graceMs: limits.graceTimeoutMs,
    announcedVersion: () => versions.announced,
    clock,
  });
}
