import { randomUUID } from "node:crypto";
import type { Job, Worker } from "bullmq";
import type { SamplingParameters } from "../../engine/engine.ts";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { markVersions } from "../../run/policy/mark-versions.ts";
import { PolicyGate } from "../../run/policy/policy-gate.ts";
import { withPromptTime } from "../../run/prompt-time.ts";
import { attemptJobSchema, type AttemptJob } from "../job/attempt-job.ts";
import type { Answer } from "../job/attempt-result.ts";
import type { SharedPlace } from "../place/shared-place.ts";
import type { PolicyState } from "../run/policy-state.ts";
import { firstPolicyState, readPolicyState } from "../run/policy-state.ts";
import type { RunEntry } from "../run/run-entry.ts";
import {
  acknowledgedKey,
  cancelledKey,
  prefix,
  queueName,
  runsKey,
  workerAliveKey,
} from "../store/keys.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { within } from "../store/within.ts";
import { playJob } from "./play-job.ts";
import { diskFiles } from "../../run/disk/files.ts";
import { ColumnWriter } from "../../run/columns/column-writer.ts";

/** The run, and the parts to play its attempts with. */
interface RunLaneOptions {
  readonly store: QueueStore;
  readonly entry: RunEntry;
  readonly worker: string;
  readonly setup: EpisodeSetup;
  readonly place: SharedPlace | undefined;
  /** The folder in which this worker writes the run's side columns. Absent if the run has none. */
  readonly columnsDir?: string | undefined;
  readonly redactor: Redactor;
  /**
   * The time without a heartbeat after which other workers take this worker's attempts, in
   * milliseconds.
   */
  readonly leaseMs: number;
  /** The interval between searches for attempts of lost workers, in milliseconds. */
  readonly lookForLostMs: number;
  readonly onTrouble: (text: string) => void;
  /** Called if the store no longer knows this worker. */
  readonly onForgotten: () => void;
}

interface PlayingJob {
  readonly id: string;
  readonly token: string;
  /** The value of `#lostCount` when the job was taken. */
  readonly lostCount: number;
  /** Stops the play when it is aborted, with a `Stopped` as the reason. The result of the play is then dropped. */
  readonly stop: AbortController;
  readonly interrupt: AbortController;
}

/** The lifetime of an acknowledged policy state, in seconds. Each heartbeat renews it. */
const acknowledgedS = 24 * 3_600;

/** The pause before an answer that the store refused is sent again, in milliseconds. */
const askAgainMs = 500;

/** The longest wait for a store that does not answer, for each step of leaving, in milliseconds. */
export const farewellMs = 2_000;

/** The reason for stopping a play. */
class Stopped extends Error {
  readonly why: "cancelled" | "lost" | "given-back";

  constructor(why: Stopped["why"]) {
    super(`the attempt was stopped: ${why}`);
    this.why = why;
  }
}

/** A worker's part in one run: takes the run's jobs and follows the policy's state. */
export class RunLane implements AsyncDisposable {
  readonly entry: RunEntry;
  /** True if the run has a shared place. A later start of the run may have one. */
  sharesResults: boolean;
  /** True if the last search found no job. */
  isEmpty = false;
  /** True if the lane takes no more jobs. Running attempts are played to their end. */
  isLeft = false;
  /** True if the store no longer lists this worker among those that joined. */
  isTakenOut = false;
  readonly #options: RunLaneOptions;
  readonly #bull: Worker;
  readonly #gate: PolicyGate;
  readonly #setup: EpisodeSetup;
  readonly #columns: ColumnWriter | undefined;
  readonly #playing = new Map<string, PlayingJob>();
  /** The number of pending requests for a job. */
  #takingCount = 0;
  /** The number of times all running attempts were lost at once. */
  #lostCount = 0;
  #state: PolicyState = firstPolicyState;
  #acknowledged: number | undefined;
  #isLeaving = false;
  #hasReportedInvalidJob = false;
  #following: Promise<void> = Promise.resolve();

  private constructor(options: RunLaneOptions, columns: ColumnWriter | undefined) {
    const { store, entry, leaseMs, lookForLostMs, setup } = options;
    this.entry = entry;
    this.sharesResults = entry.probe !== undefined;
    this.#options = options;
    this.#gate = new PolicyGate(
      markVersions(setup.engine, () => {
        const { version, isMarked: overrules } = this.#state;
        return { version, overrules };
      }),
      {
        graceMs: setup.limits.graceTimeoutMs,
        announcedVersion: () => this.#state.version,
        ...withoutUndefined({ clock: setup.clock }),
      },
    );
    this.#setup = {
      ...setup,
      engine: this.#gate.engine,
      sampling: entry.sampling,
      ...(columns !== undefined && { columnStore: columns }),
    };
    this.#columns = columns;
    this.#bull = new store.bullmq.Worker(queueName(entry.run), null, {
      ...store.bullOptions,
      autorun: false,
      lockDuration: leaseMs,
      stalledInterval: lookForLostMs,
      // The hand-out decides after how many losses an attempt fails.
      maxStalledCount: 1_000_000,
      name: options.worker,
    });
    // The store's own connection reports these errors.
    this.#bull.on("error", () => {});
  }

  /**
   * Joins a run. From then on, the run's hand-out waits for this worker before it changes the
   * policy.
   * @throws UsageError if the files for side columns cannot be created.
   */
  static async open(options: RunLaneOptions): Promise<RunLane> {
    const { columnsDir } = options;
    const columns = columnsDir === undefined ? undefined : await openColumns(columnsDir);
    const lane = new RunLane(options, columns);
    await lane.#bull.waitUntilReady();
    await lane.follow();
    await lane.#bull.startStalledCheckTimer();
    return lane;
  }

  /** The number of attempts that are being played. */
  get playingCount(): number {
    return this.#playing.size;
  }

  get playingIds(): readonly string[] {
    return [...this.#playing.keys()];
  }

  /**
   * True if the worker is registered with the run, as far as it knows, so that the hand-out waits
   * for it. It takes no job before that.
   */
  get hasJoined(): boolean {
    return this.#acknowledged !== undefined;
  }

  /** True if an attempt is running, or a job may be arriving. */
  get isBusy(): boolean {
    return this.#playing.size > 0 || this.#takingCount > 0;
  }

  /**
   * Takes the next job of the run. Resolves with a function that plays it, or with `undefined` if
   * there is none.
   */
  async take(): Promise<(() => Promise<void>) | undefined> {
    const token = randomUUID();
    let job: Job | undefined;
    this.#takingCount += 1;
    try {
      job = await this.#next(token);
    } finally {
      this.#takingCount -= 1;
    }
    if (job === undefined || job.id === undefined) {
      this.isEmpty = true;
      return undefined;
    }
    const playing: PlayingJob = {
      id: job.id,
      token,
      lostCount: this.#lostCount,
      stop: new AbortController(),
      interrupt: new AbortController(),
    };
    // If the queue returns a job that this worker already plays, the lock of the earlier play has
    // expired.
    this.#playing.get(job.id)?.stop.abort(new Stopped("lost"));
    this.#playing.set(job.id, playing);
    return async () => {
      try {
        await this.#play(job, playing);
      } finally {
        if (this.#playing.get(playing.id) === playing) this.#playing.delete(playing.id);
      }
    };
  }

  async #next(token: string): Promise<Job | undefined> {
    for (;;) {
      try {
        return (await this.#bull.getNextJob(token, { block: false })) as Job | undefined;
      } catch (error) {
        // A store that refuses writes cannot give out a job. The next search asks again.
        if (isRefusal(error)) return undefined;
        if (!(error instanceof SyntaxError)) throw error;
        // This call has taken the invalid job, so other workers do not get it.
        if (!this.#hasReportedInvalidJob) {
          this.#options.onTrouble(`skips an invalid job in run ${this.entry.run}'s queue`);
        }
        this.#hasReportedInvalidJob = true;
      }
    }
  }

  async #play(job: Job, playing: PlayingJob): Promise<void> {
    const { worker, place, redactor, store } = this.#options;
    const parsed = attemptJobSchema.safeParse(job.data);
    const unfit = parsed.success ? this.#unfitFor(parsed.data) : "the job is of another form";
    const callOff = parsed.success ? this.#endAt(parsed.data.deadlineAtMs, playing) : () => {};
    try {
      let played: Awaited<ReturnType<typeof playJob>>;
      if (!parsed.success || unfit !== undefined) {
        const answer = notPlayed(job, worker, "unfit", unfit ?? "");
        played = { answer, forget: async () => {} };
      } else {
        const { data } = parsed;
        // The notification of a new version may have been lost.
        if (data.policyRevision > this.#state.revision) await this.#followForJob();
        const sampling = (data.sampling ?? this.entry.sampling) as SamplingParameters;
        played = await playJob({
          id: playing.id,
          job: data,
          worker,
          place,
          redactor,
          clock: store.clock,
          deliveries: Math.max(1, job.attemptsStarted),
          setup: withPromptTime({ ...this.#setup, sampling }, data.promptTime),
          isRecorded: this.entry.isRecorded,
          sharesResults: this.sharesResults,
          mayRecord: async () => await this.#mayLand(playing),
          ...(this.#columns && { syncColumns: async () => await this.#columns?.flush() }),
          signal: playing.stop.signal,
          interrupt: playing.interrupt.signal,
        });
      }
      await this.#answer(job, playing, played.answer);
      await played.forget();
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      await this.#leave(job, playing, error.why);
    } finally {
      callOff();
    }
  }

  /**
   * Reads the policy's state for a job. If the store refuses writes, returns the job to the queue.
   */
  async #followForJob(): Promise<void> {
    try {
      await this.follow();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      throw new Stopped("given-back");
    }
  }

  /** Stops the play at its deadline. Returns a function that cancels the timer. */
  #endAt(deadlineAtMs: number | undefined, { stop }: PlayingJob): () => void {
    if (deadlineAtMs === undefined) return () => {};
    const leftMs = deadlineAtMs - this.#options.store.now();
    const end = (): void => stop.abort(new Stopped("cancelled"));
    return this.#options.store.clock.after(Math.max(0, leftMs), end);
  }

  #unfitFor(job: AttemptJob): string | undefined {
    if (job.run !== this.entry.run) return `it is a job of run ${job.run}`;
    if (job.terms === this.entry.termsHash) return undefined;
    return "it was handed out on other terms than its run has now";
  }

  /**
   * Sends an answer as the holder of the job's lock. If another worker has the lock, drops the
   * answer.
   */
  async #answer(job: Job, playing: PlayingJob, answer: Answer): Promise<void> {
    for (;;) {
      try {
        // A job from a store that has just lost its data is locked by this worker, but no hand-out
        // waits for it.
        const isSampled = answer.type === "played";
        if (isSampled && !(await this.#mayLand(playing))) throw new Stopped("lost");
        await job.moveToCompleted(answer, playing.token, false);
        return;
      } catch (error) {
        if (error instanceof Stopped) throw error;
        if (isLost(error)) throw new Stopped("lost");
        if (!isRefusal(error)) throw error;
      }
      playing.stop.signal.throwIfAborted();
      await this.#options.store.clock.sleep(askAgainMs);
    }
  }

  async #leave(job: Job, playing: PlayingJob, why: Stopped["why"]): Promise<void> {
    const { store, worker, onTrouble } = this.#options;
    try {
      if (why === "lost") {
        const { rolloutId = job.id } = job.data as Partial<AttemptJob>;
        onTrouble(`${rolloutId} is not this worker's any more: what it played of it is left out`);
        // Returning the job at once spares other workers the wait for its lock to expire.
        const returned = job.moveToWait(playing.token).catch(() => {});
        await within(farewellMs, returned, store.clock);
      } else if (why === "given-back") await job.moveToWait(playing.token);
      else {
        const answer = notPlayed(job, worker, "cancelled", "it was called off");
        await job.moveToCompleted(answer, playing.token, false);
        await job.remove();
      }
    } catch (error) {
      // A missed answer is detected when the lock expires.
      if (!isLost(error) && !isRefusal(error)) throw error;
    }
  }

  /** Renews the locks of running jobs, and stops jobs that were lost, cancelled or interrupted. */
  async renew(): Promise<void> {
    const jobs = [...this.#playing.values()];
    if (jobs.length === 0) return;
    const { store, leaseMs } = this.#options;
    const ids = jobs.map(({ id }) => id);
    const lost = await this.#bull.extendJobLocks(
      ids,
      jobs.map(({ token }) => token),
      leaseMs,
    );
    for (const id of lost) this.#playing.get(id)?.stop.abort(new Stopped("lost"));
    const marks = [...ids, ...ids.map((id) => `interrupt:${id}`)];
    const found = await store.redis.smismember(cancelledKey(this.entry.run), ...marks);
    this.cancel(ids.filter((_, index) => found[index] === 1));
    this.interrupt(ids.filter((_, index) => found[index + ids.length] === 1));
  }

  /** Stops attempts with results that are no longer needed. */
  cancel(ids: readonly string[]): void {
    for (const id of ids) this.#playing.get(id)?.stop.abort(new Stopped("cancelled"));
  }

  /** Interrupts attempts: they end with the turns so far. */
  interrupt(ids: readonly string[]): void {
    for (const id of ids) this.#playing.get(id)?.interrupt.abort();
  }

  /**
   * Stops all attempts and returns their jobs to the queue, so that other workers can resume them.
   */
  giveBack(): void {
    for (const { stop } of this.#playing.values()) stop.abort(new Stopped("given-back"));
  }

  /** Starts no turn, because the hand-out cannot reach this worker. */
  cutOff(): void {
    void this.#gate.close("hold");
  }

  /**
   * Stops all attempts, because the hand-out no longer waits for them. Starts nothing until the
   * worker has joined again.
   */
  lose(): void {
    this.#lostCount += 1;
    this.#acknowledged = undefined;
    this.cutOff();
    for (const { stop } of this.#playing.values()) stop.abort(new Stopped("lost"));
  }

  /**
   * True if the samples of a play count. They do not if the store no longer lists this worker: the
   * policy's weights may have changed without waiting for it.
   */
  async #mayLand({ lostCount }: PlayingJob): Promise<boolean> {
    if (lostCount !== this.#lostCount) return false;
    const { onForgotten, store, worker } = this.#options;
    const [isAlive, hasJoined] = await Promise.all([
      store.redis.exists(workerAliveKey(worker)),
      store.redis.hexists(acknowledgedKey(this.entry.run), worker),
    ]);
    if (lostCount !== this.#lostCount) return false;
    if (isAlive === 1 && hasJoined === 1) return true;
    this.lose();
    onForgotten();
    return false;
  }

  /**
   * Reads the policy's state, opens or closes this worker's gate accordingly, and acknowledges the
   * state.
   */
  async follow(): Promise<void> {
    const followed = this.#following.then(async () => await this.#follow());
    this.#following = followed.catch(() => {});
    await followed;
  }

  async #follow(): Promise<void> {
    const { store } = this.#options;
    const { run } = this.entry;
    const lostCount = this.#lostCount;
    let state = await readPolicyState(store, run);
    if (lostCount !== this.#lostCount) return;
    if (state === undefined) {
      // The store has lost the state. The worker starts no turn until the hand-out has written it
      // again.
      this.cutOff();
      return;
    }
    if (this.#acknowledged === undefined) {
      // A worker joins before it plays, because the hand-out waits only for joined workers. No
      // attempt is running now.
      this.cutOff();
      await this.#acknowledge(state);
      // The hand-out did not wait for anything that happened before joining.
      state = await readPolicyState(store, run);
      if (lostCount !== this.#lostCount || state === undefined) return;
    }
    this.#state = state;
    if (state.gate === "open") {
      this.#gate.open();
      await this.#acknowledge(state);
      return;
    }
    // Not awaited: a later state may open the gate before it is closed.
    this.#gate
      .close(state.gate)
      .then(async () => {
        if (this.#state === state) await this.#acknowledge(state);
      })
      .catch(() => {});
  }

  async #acknowledge({ revision }: PolicyState): Promise<void> {
    const { store, worker } = this.#options;
    const { run } = this.entry;
    if (this.#isLeaving) return;
    const key = acknowledgedKey(run);
    const lostCount = this.#lostCount;
    const answers = await store.redis
      .multi()
      .hset(key, worker, revision)
      .expire(key, acknowledgedS)
      .exists(workerAliveKey(worker))
      .exec();
    // All attempts were lost during the await, and the worker must join again.
    if (lostCount !== this.#lostCount) return;
    if (answers?.[2]?.[1] !== 1) {
      // The store has no heartbeat of this worker, for example because it lost its data. The
      // hand-out treats the worker as dead.
      this.lose();
      this.#options.onForgotten();
      return;
    }
    if (revision === this.#acknowledged) return;
    this.#acknowledged = revision;
    await store.publish({ type: "acknowledged", run });
  }

  /** Leaves the run. All attempts must have stopped before. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isLeaving = true;
    await this.#following;
    await this.#bull.close(true);
    await this.#columns?.[Symbol.asyncDispose]();
    // If the store refuses writes now, the entry expires by itself, although not soon.
    await this.takeOut().catch(() => {});
  }

  /**
   * Removes this worker from the run's joined workers after it has left. The hand-out waits for it
   * until then. If the store refuses the write, call this again.
   */
  async takeOut(): Promise<void> {
    const { store, worker } = this.#options;
    const { run } = this.entry;
    if (this.isTakenOut || store.redis.status !== "ready") return;
    await store.redis.hdel(acknowledgedKey(run), worker);
    // BullMQ's search for lost attempts may create keys of a removed run again.
    const isGone = (await store.redis.hexists(runsKey, run)) === 0;
    if (isGone) await store.redis.del(`${prefix}:${queueName(run)}:meta`);
    this.isTakenOut = true;
  }
}

/**
 * A shared file can be removed once its parts are taken, and a file is closed when it has this many bytes. Smaller files
 * free their space sooner.
 */
const columnFileBytes = 256 * 2 ** 20;

/** Opens files of a new writer. Its name is random, so that no other process writes the same files. */
async function openColumns(dir: string): Promise<ColumnWriter> {
  return await ColumnWriter.open(dir, {
    files: diskFiles,
    name: `worker-${randomUUID()}`,
    fileBytes: columnFileBytes,
  });
}

function notPlayed(job: Job, worker: string, why: "unfit" | "cancelled", message: string): Answer {
  const { handOut } = job.data as Partial<AttemptJob>;
  const whose = typeof handOut === "string" ? handOut : "";
  return { answer: 1, type: "not-played", handOut: whose, worker, why, message };
}

/**
 * BullMQ's codes for a job that does not belong to this worker: missing, not locked, not active, or
 * locked by another.
 */
const lostCodes: ReadonlySet<unknown> = new Set([-1, -2, -3, -6]);

function isLost(error: unknown): boolean {
  return lostCodes.has((error as { readonly code?: unknown }).code);
}

/**
 * True if the store refuses writes for now: it is full, cannot write to its disk, or has become a
 * replica.
 */
function isRefusal(error: unknown): boolean {
  const text = error instanceof Error ? error.message : "";
  // Older stores put their own text around the error of a command in a script.
  return /(?:^|-)(?:EXECABORT|OOM|MISCONF|READONLY|LOADING|BUSY|MASTERDOWN|NOREPLICAS|TRYAGAIN)\b/.test(
    text,
  );
}
