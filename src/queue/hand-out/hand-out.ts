import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Queue, QueueEvents } from "bullmq";
import type { EpisodeAssignment } from "../../episode/episode-setup.ts";
import { failedEpisode, unplayedEpisode } from "../../episode/unplayed-episode.ts";
import type { SamplingParameters } from "../../engine/engine.ts";
import type { Inputs } from "../../episode/inputs/input.ts";
import { PlaybackStop } from "../../outside.ts";
import { UsageError, describeError } from "../../errors.ts";
import type { AttemptPlayer, PlayPlace } from "../../run/attempt/attempt-player.ts";
import { ownTask, type OwnTask } from "../../run/folder/task-record.ts";
import { toPromptTime } from "../../run/prompt-time.ts";
import { jobIdOf, requireNames, type AttemptJob } from "../job/attempt-job.ts";
import { LineWriter } from "../job/job-recording.ts";
import { PayloadError, sendPayload, type Payload } from "../job/payload.ts";
import type { SharedPlace } from "../place/shared-place.ts";
import { describeNoWorker } from "../run/no-worker.ts";
import type { KnownPolicy } from "../run/policy-state.ts";
import { forgetRun, parseRunEntry, runSilenceMs, type RunEntry } from "../run/run-entry.ts";
import { hashTerms, type RunTerms } from "../run/run-terms.ts";
import { queueName, runAliveKey, runsKey } from "../store/keys.ts";
import { beginWith } from "../store/begin-with.ts";
import { holdKey, leaveKey } from "../store/held-key.ts";
import { blockMs, type QueueStore } from "../store/queue-store.ts";
import { within } from "../store/within.ts";
import { HandedJob } from "./handed-job.ts";
import { JobLedger } from "./job-ledger.ts";
import type { HandOutNews } from "./hand-out-news.ts";
import { TakenColumns } from "./taken-columns.ts";
import { RemotePolicy } from "./remote-policy.ts";

/** The run to hand out, the store, and the folders for shared files. */
export interface HandOutOptions {
  readonly store: QueueStore;
  /** The run's id: letters, digits, `_` and `-`. */
  readonly run: string;
  /** The environment's name. */
  readonly environment: string;
  readonly terms: RunTerms;
  readonly sampling: SamplingParameters;
  /** True if workers record attempts, so that another worker can resume them. */
  readonly isRecorded: boolean;
  readonly place?: SharedPlace;
  /**
   * The folder in the shared place in which workers write the run's side columns. Default: they write into the run's own
   * folder.
   */
  readonly columnsDir?: string;
  /**
   * True to mark all sampled tokens with the announced version. False to do so only if the engine
   * reports no whole number. Default false.
   */
  readonly isMarked?: boolean;
  /**
   * The policy's gate and version, if known. Default: the state that the previous hand-out left,
   * until the first attempt is handed out.
   */
  readonly policy?: KnownPolicy;
  readonly onNews?: (news: HandOutNews) => void;
  /**
   * The interval between heartbeats and between checks of the jobs, in milliseconds. Default 2 000.
   */
  readonly everyMs?: number;
}

/** Options for some attempts of a run. */
interface PlayerScope {
  /** A name that separates rollouts with the same id, such as those of two batches. */
  readonly name?: string;
  /** Sampling parameters that replace the run's. */
  readonly sampling?: SamplingParameters;
  /** The deadline in milliseconds since the epoch. No result is needed after it. */
  readonly deadlineAtMs?: number;
}

/** The longest time for which closing waits for a store that does not answer, in milliseconds. */
const farewellMs = 8_000;

/**
 * Distributes the attempts of one run to workers and collects their results, with BullMQ as the
 * queue. Accepts the first valid result of each attempt; only the worker that has the job's lock
 * can send one.
 */
export class HandOut implements AsyncDisposable {
  readonly policy: RemotePolicy;
  readonly #options: HandOutOptions;
  readonly #book: JobLedger;
  readonly #columns: TakenColumns;
  readonly #queue: Queue;
  readonly #events: QueueEvents;
  readonly #eventsClient: QueueStore["redis"];
  readonly #token = randomUUID();
  readonly #termsHash: string;
  readonly #startedAtMs: number;
  readonly #probe: string | undefined;
  /** Cancels the next check. */
  #callOff = (): void => {};
  #noWorker: string | undefined;
  #isClosing = false;
  /** True once another process hands out the run. The run's entries in the store are then those of that process. */
  #isLost = false;
  #tending: Promise<void> = Promise.resolve();

  private constructor(
    options: HandOutOptions,
    open: { readonly policy: RemotePolicy; readonly probe: string | undefined },
  ) {
    this.#options = options;
    this.policy = open.policy;
    this.#probe = open.probe;
    this.#termsHash = hashTerms(options.terms);
    const { store, run, place, columnsDir } = options;
    this.#startedAtMs = store.wallNow();
    this.#columns = new TakenColumns(columnsDir, store.clock);
    const { Queue: BullQueue, QueueEvents: BullEvents } = store.bullmq;
    this.#queue = new BullQueue(queueName(run), {
      ...store.bullOptions,
      // The events contain the results, so a long list of them would need much memory.
      streams: { events: { maxLen: 500 } },
    });
    this.#eventsClient = store.redis.duplicate();
    this.#eventsClient.on("error", () => {});
    this.#events = new BullEvents(queueName(run), {
      ...store.bullOptions,
      connection: this.#eventsClient,
      blockingTimeout: blockMs,
    });
    this.#book = new JobLedger({
      store,
      run,
      queue: this.#queue,
      ...(place && { place }),
      columns: this.#columns,
      onNews: (news) => options.onNews?.(news),
    });
    // The store's own connection reports these errors (see `QueueStore`).
    this.#queue.on("error", () => {});
    this.#events.on("error", () => {});
    this.#events.on("completed", ({ jobId, returnvalue }) => this.#book.take(jobId, returnvalue));
    this.#events.on("active", ({ jobId }) => this.#book.noteBegun(jobId));
  }

  /**
   * Starts or resumes handing out a run. Takes the results that workers finished in the meantime.
   * @throws UsageError if the shared place or the store cannot be written.
   */
  static async open(options: HandOutOptions): Promise<HandOut> {
    const { store, run, place, isMarked = false, policy: known } = options;
    const probe = place && `probe/${run}`;
    if (place !== undefined) await writeProbe(place, run);
    const policy = await beginWith("hand out by", () =>
      RemotePolicy.open(store, run, { isMarked, ...(known !== undefined && { known }) }),
    );
    const handOut = new HandOut(options, { policy, probe });
    try {
      await beginWith("hand out by", () => handOut.#enter());
    } catch (error) {
      await handOut[Symbol.asyncDispose]();
      throw error;
    }
    handOut.#tend();
    return handOut;
  }

  /**
   * Registers this process in the store as the run's hand-out. An earlier hand-out of the run then
   * stops.
   */
  async #enter(): Promise<void> {
    const { store, run } = this.#options;
    await this.#queue.waitUntilReady();
    await store.redis.set(runAliveKey(run), this.#token, "PX", runSilenceMs);
    await this.#writeEntry();
    await store.publish({ type: "run", run });
  }

  /** Returns a player that sends attempts to workers. `scope` applies to all of its attempts. */
  player(scope: PlayerScope = {}): AttemptPlayer {
    const { policy } = this;
    return {
      play: async (assignment, setup, options) => {
        const { interrupt, signal, past, recordedAt, groupLeft, redactor } = options;
        signal.throwIfAborted();
        const unplayed = () => unplayedEpisode(assignment, setup);
        const startedAtMs = setup.now();
        const isInterrupted = (): boolean => interrupt?.aborted === true;
        if (isInterrupted()) return unplayed();
        const { columnStore } = setup;
        if (setup.columns !== undefined && columnStore?.has === undefined) {
          throw new UsageError(
            `Cannot hand out ${assignment.rolloutId}: its rows have side columns, and the run has no folder for them`,
          );
        }
        policy.begin();
        const own = ownTask(assignment.task, {
          environment: setup.environment,
          ...(redactor && { redactor }),
        });
        const { promptTime } = setup;
        const job = {
          ...(await this.#describe(assignment, scope, { past, own })),
          ...(recordedAt && recordedAt.part > 0 && { recordedAt }),
          ...(promptTime && { promptTime: toPromptTime(promptTime) }),
        };
        signal.throwIfAborted();
        // The run was interrupted during the await, so no worker needs to play the attempt.
        if (isInterrupted()) return unplayed();
        const { groupIndex = assignment.groupId } = assignment;
        const handed = new HandedJob({
          id: this.#idOf(assignment, scope),
          job,
          onTrouble: setup.onTrouble,
          columnStore,
          unplayed,
          failed: (failure) => failedEpisode(failure, assignment, { setup, startedAtMs }),
          group: `${scope.name ?? ""}/${groupIndex}`,
          groupLeft,
        });
        return await this.#book.play(handed, { signal, interrupt });
      },
      landed: (place: PlayPlace) => this.#book.landed(jobIdOf({ ...scopeName(scope), ...place })),
      pause: async (mode) => await policy.close(mode),
      resume: () => policy.open(),
      announcePolicy: (version) => policy.announce(version),
    };
  }

  #idOf({ rolloutId, attempt = 1 }: EpisodeAssignment, scope: PlayerScope): string {
    return jobIdOf({ ...scopeName(scope), rolloutId, attempt });
  }

  async #describe(
    assignment: EpisodeAssignment,
    { sampling, deadlineAtMs }: PlayerScope,
    { past, own }: { readonly past: Inputs | undefined; readonly own: OwnTask | undefined },
  ): Promise<AttemptJob> {
    const { rolloutId, groupId, groupIndex, sampleIndex, task, seed } = assignment;
    const { samplingSeed, forkedFrom, attempt = 1, start = 1 } = assignment;
    const named = { rolloutId, groupId, taskId: task.id, split: task.split };
    requireNames({ ...named, ...(forkedFrom && { forkedFrom }) });
    const { store, run } = this.#options;
    const place = { rolloutId, attempt, isFork: forkedFrom !== undefined };
    const sent = past && (await this.#sendPast(place, past));
    const sentTask = own && (await this.#sendTask(rolloutId, own));
    // Writes the policy's state before the job, so that its worker finds it.
    await this.policy.written();
    const { revision: policyRevision, version } = this.policy;
    return {
      job: 1,
      run,
      handOut: this.#token,
      terms: this.#termsHash,
      policyRevision,
      ...(version !== undefined && { policyVersion: version }),
      ...named,
      taskIndex: task.index,
      sampleIndex,
      seed,
      attempt,
      start,
      ...(sentTask && { ownTask: sentTask }),
      ...(groupIndex !== undefined && { groupIndex }),
      ...(samplingSeed !== undefined && { samplingSeed }),
      ...(forkedFrom && { forkedFrom }),
      ...(past?.nextPromptHash !== undefined && { partingHash: past.nextPromptHash }),
      ...(sampling && { sampling }),
      ...(deadlineAtMs !== undefined && {
        deadlineAtMs: store.now() + (deadlineAtMs - store.wallNow()),
      }),
      ...(sent && { past: sent }),
    };
  }

  /** Sends the recording from which an attempt resumes. Returns `undefined` if the attempt has no recording. */
  async #sendPast(
    { isFork, ...place }: PlayPlace & { readonly isFork: boolean },
    past: Inputs,
  ): Promise<Payload | undefined> {
    if (past.inputs.length === 0 && past.times.length === 0) return undefined;
    const text = new LineWriter(place).add(past);
    try {
      const name = `past/${this.#options.run}/${jobIdOf(place)}`;
      return await sendPayload(text, {
        place: this.#options.place,
        name,
        what: `what is recorded of ${place.rolloutId}`,
        clock: this.#options.store.clock,
      });
    } catch (error) {
      if (error instanceof PayloadError) throw new UsageError(error.message);
      if (!(error instanceof UsageError) || isFork) throw error;
      // The attempt starts from its first turn, and the run reports the reason.
      throw new PlaybackStop(error.message);
    }
  }

  /**
   * Sends the task itself, because a worker would make another task from its split and index.
   * @throws UsageError if the task cannot be sent.
   */
  async #sendTask(rolloutId: string, { task }: OwnTask): Promise<Payload> {
    const { environment, place, run, store } = this.#options;
    if (task === undefined) {
      throw new UsageError(
        `Cannot hand out ${rolloutId}: ${environment} draws another task in the place of its own, which cannot ` +
          "travel to workers: it has what JSON cannot say, such as a function, a Map or a Date, or holds a " +
          "secret; give its data as plain JSON, or play without a queue",
      );
    }
    try {
      return await sendPayload(JSON.stringify(task), {
        // Attempts at the same task share one file.
        place,
        name: `tasks/${run}/task`,
        what: `the task of ${rolloutId}`,
        clock: store.clock,
      });
    } catch (error) {
      if (error instanceof PayloadError) throw new UsageError(error.message);
      throw error;
    }
  }

  /** Ends the run: all attempts that are handed out reject with the error. */
  fail(error: UsageError): void {
    this.#book.fail(error);
  }

  /** Schedules the next check of the run and its jobs, until the hand-out is closed. */
  #tend(): void {
    const { everyMs = 2_000, store } = this.#options;
    this.#callOff = store.clock.after(everyMs, () => {
      this.#tending = this.#look()
        .catch((error: unknown) => {
          if (error instanceof UsageError) this.#book.fail(error);
          // The store is unreachable. A later check does what is due.
        })
        .finally(() => {
          if (!this.#isClosing && !this.#isLost) this.#tend();
        });
    });
  }

  async #look(): Promise<void> {
    const { store, run } = this.#options;
    if (!(await this.#hold())) {
      this.#isLost = true;
      throw new UsageError(
        `Cannot continue: another process hands out the same run ${run}, such as from a copy of its folder`,
      );
    }
    await store.readClock();
    // The policy is written before the run, so that every worker that finds the run finds its
    // policy.
    const wasLost = await this.policy.keep();
    await this.#writeEntry();
    // Workers that were notified of the policy earlier found no run in the store.
    if (wasLost) await store.publish({ type: "run", run });
    await this.#book.lookAfter();
    await this.#lookForWorkers();
  }

  /** Sends a heartbeat. Returns false if another process hands out the run. */
  async #hold(): Promise<boolean> {
    const { store, run } = this.#options;
    const claim = { token: this.#token, livesMs: runSilenceMs };
    return await holdKey(store.redis, runAliveKey(run), claim);
  }

  async #lookForWorkers(): Promise<void> {
    const { store, run, onNews } = this.#options;
    const why = this.#book.count === 0 ? undefined : await describeNoWorker(store, run);
    if (why === this.#noWorker) return;
    this.#noWorker = why;
    onNews?.(why === undefined ? { type: "worker-there" } : { type: "no-worker", why });
  }

  async #writeEntry(): Promise<void> {
    const { store, run, environment, terms, sampling, isRecorded } = this.#options;
    const entry: RunEntry = {
      entry: 1,
      run,
      environment,
      terms,
      termsHash: this.#termsHash,
      isRecorded,
      sampling: Object.fromEntries(
        Object.entries(sampling).flatMap(([name, value]) =>
          typeof value === "number" ? [[name, value]] : [],
        ),
      ),
      host: hostname(),
      pid: process.pid,
      startedAtMs: this.#startedAtMs,
      atMs: store.wallNow(),
      waiting: this.#book.count,
      landed: this.#book.landedCount,
      ...(this.#probe !== undefined && { probe: this.#probe }),
    };
    const text = JSON.stringify(entry);
    if (parseRunEntry(text) === undefined) {
      throw new UsageError(
        `Cannot hand out run ${run}: what workers are to know of it is too long`,
      );
    }
    await store.redis.hset(runsKey, run, text);
  }

  /**
   * Cancels the unfinished jobs. Accepted answers whose episodes are not on the disk stay in the
   * queue for the next start.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    const { clock } = this.#options.store;
    this.#callOff();
    this.policy.stop();
    // Does not wait long for an unreachable store: the next hand-out cleans up.
    await within(farewellMs, this.#leave(), clock);
    // Pending calls to the store need not finish.
    this.#eventsClient.disconnect();
    await this.#events.close().catch(() => {});
    await within(
      farewellMs,
      this.#queue.close().catch(() => {}),
      clock,
    );
    await this.#columns[Symbol.asyncDispose]();
  }

  async #leave(): Promise<void> {
    const { store, run, place } = this.#options;
    await this.#tending;
    await this.#book.close();
    if (this.#isLost || store.redis.status !== "ready") return;
    try {
      // Another process may have taken the run since the last check.
      if (!(await this.#hold())) return;
      if (this.#book.isEverythingLanded) {
        await this.#queue.obliterate({ force: true });
        await forgetRun(store, run);
        if (this.#probe !== undefined) await place?.remove(this.#probe);
      } else {
        await leaveKey(store.redis, runAliveKey(run), this.#token);
        await this.#writeEntry();
      }
      await store.publish({ type: "run", run });
    } catch {
      // The store has become unreachable.
    }
  }
}

/** Writes a file by which workers check that they have the same shared place. */
async function writeProbe(place: SharedPlace, run: string): Promise<void> {
  try {
    await place.write(`probe/${run}`, Buffer.from(run));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot use --shared ${place.shown}: ${describeError(error)}`, {
      cause: error,
    });
  }
}

function scopeName({ name }: PlayerScope): { readonly scope?: string } {
  return name === undefined ? {} : { scope: name };
}
