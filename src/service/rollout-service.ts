import path from "node:path";
import { setMaxListeners } from "node:events";
import { systemClock } from "../internal/clock.ts";
import { makeFolder } from "../internal/make-folder.ts";
import { withResolvers } from "../internal/with-resolvers.ts";
import { createAdmissionGate } from "../run/admission.ts";
import { RunLock } from "../run/run-lock.ts";
import { BatchBook, attemptsOf } from "./batch-book.ts";
import { BatchConduct, batchFolder } from "./batch-conduct.ts";
import type { BatchRequest } from "./batch-request.ts";
import { BatchSchedule } from "./batch-schedule.ts";
import type { Taker } from "./batch-taker.ts";
import { drawTasks, planBatch, type Batch, type BatchStatus } from "./batch.ts";
import { GroupStore } from "./group-store.ts";
import { PolicyControl } from "./policy-control.ts";
import { PolicyWeights, type Announcement } from "./policy-weights.ts";
import type {
  Acknowledgement,
  RemotePlayers,
  RolloutServiceOptions,
  ServiceHealth,
} from "./rollout-service-options.ts";
import { ServiceError } from "./service-error.ts";
import {
  openServiceJournal,
  type GroupEntry,
  type ServiceEntry,
  type ServiceJournal,
} from "./service-journal.ts";
import { TrainerGroups, type TrainerGroupPlace } from "./trainer-groups.ts";

/** Plays batches of rollouts that others ask for, and keeps their groups until they are taken. */
export class RolloutService implements AsyncDisposable {
  readonly groups: GroupStore;
  readonly trainerGroups: TrainerGroups;
  /** Rejects where the service cannot go on, such as on a full disk. Never resolves. */
  readonly failed: Promise<never>;
  readonly #fail: (reason: unknown) => void;
  readonly #options: RolloutServiceOptions;
  readonly #lock: RunLock;
  readonly #remote: RemotePlayers | undefined;
  readonly #journal: ServiceJournal;
  readonly #policy: PolicyControl;
  readonly #weights: PolicyWeights;
  readonly #places: ReturnType<typeof createAdmissionGate>;
  readonly #book = new BatchBook();
  readonly #conduct: BatchConduct;
  readonly #schedule: BatchSchedule;
  readonly #stop = new AbortController();

  private constructor(
    options: RolloutServiceOptions,
    open: {
      readonly lock: RunLock;
      readonly journal: ServiceJournal;
      readonly remote: RemotePlayers | undefined;
    },
  ) {
    const { setup, concurrency, clock = systemClock, weights } = options;
    const { engine, now } = setup;
    const { journal, remote } = open;
    this.#options = options;
    this.#remote = remote;
    this.#lock = open.lock;
    this.#journal = journal;
    const append = async (entry: ServiceEntry): Promise<void> => await this.#append(entry);
    const policy = new PolicyControl(engine, {
      ...(options.batchEngines && { others: options.batchEngines }),
      remote: remote?.policy,
    });
    this.#policy = policy;
    this.#weights = new PolicyWeights({
      ...{ policy, control: weights, engineKind: engine.kind, append },
    });
    this.#places = createAdmissionGate({ concurrency });
    const groups = new GroupStore(path.join(options.dir, "groups"), { journal });
    this.groups = groups;
    this.trainerGroups = new TrainerGroups(async (ids) => await setup.renderer.codec.decode(ids));
    const { signal: stopped } = this.#stop;
    const places = this.#places;
    this.#conduct = new BatchConduct({ options, policy, remote, places, groups, journal, stopped });
    this.#schedule = new BatchSchedule({
      ...{ concurrency, clock, now, stopped },
      mayBegin: (batch) => this.#mayBegin(batch),
      play: async (batch) => await this.#orFail(this.#conduct.play(batch)).catch(() => {}),
      onRest: (batch) => this.#book.forgetEnded(batch),
    });
    const { promise, reject } = withResolvers<never>();
    this.failed = promise;
    this.#fail = reject;
    // Whoever awaits it is told.
    promise.catch(() => {});
    setMaxListeners(0, stopped);
  }

  /**
   * Opens a data folder and goes on with what was accepted there.
   *
   * @throws UsageError where another process writes the folder, or it cannot be used.
   */
  static async open(options: RolloutServiceOptions): Promise<RolloutService> {
    const { dir } = options;
    await makeFolder(path.join(dir, "groups"));
    await makeFolder(path.join(dir, "batches"));
    const lock = await RunLock.take(dir, options.lock);
    let remote: RemotePlayers | undefined;
    try {
      const guard = (): Promise<void> => lock.confirm();
      const { journal, entries } = await openServiceJournal(dir, { guard });
      remote = await options.openRemote?.();
      const service = new RolloutService(options, { lock, journal, remote });
      service.#restore(entries);
      await service.#dropUnawaited();
      await service.#weights.reload(entries);
      await service.groups.tidy();
      service.#schedule.advance();
      return service;
    } catch (error) {
      await remote?.[Symbol.asyncDispose]();
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Aborted once the service is stopping. */
  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  get health(): ServiceHealth {
    const { open } = this.#book;
    const running = this.#places.state.admitted;
    const calm = this.#policy.isPaused ? "paused" : "running";
    return {
      state: this.#stop.signal.aborted ? "stopping" : calm,
      environment: this.#options.setup.environment.name,
      policyVersion: this.#policy.version ?? null,
      batches: open.size,
      queuedAttempts: Math.max(0, attemptsOf(open) - running),
      runningAttempts: running,
      unreadGroups: this.groups.unreadCount,
    };
  }

  /**
   * Accepts a batch; resolves once it survives a restart.
   *
   * @param taker - Who is given its groups, in the place of the readers of `/v1/groups`; its keys are its own.
   * @returns whether it is new: the same key again is the same batch.
   * @throws ServiceError `bad-request`, `key-reused`, `queue-full` or `stopping`.
   */
  async submit(
    request: BatchRequest,
    taker?: string,
  ): Promise<{ readonly status: BatchStatus; readonly isNew: boolean }> {
    const book = this.#book;
    const { setup, maxQueued } = this.#options;
    const known = await book.known(request, taker);
    if (known !== undefined) return known;
    this.#requireRunning();
    this.#requireEngine(request);
    book.requireRoom(request, maxQueued);
    await drawTasks(planBatch(setup.environment, request));
    // Meanwhile the same may have been asked for, or all been stopped.
    const raced = await book.known(request, taker);
    if (raced !== undefined) return raced;
    this.#requireRunning();
    book.requireRoom(request, maxQueued);
    const atMs = setup.now();
    const batch = book.add({ request, atMs, taker });
    const by = taker === undefined ? {} : { taker };
    const accepted = this.#append({ type: "batch", batch: batch.id, atMs, request, ...by });
    book.claimKey(batch, accepted);
    await accepted;
    this.#schedule.add(batch);
    this.#schedule.advance();
    return { status: batch.status, isNew: true };
  }

  /** Attempts of groups that were told since this start, by outcome. */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#conduct.outcomes;
  }

  /** @throws ServiceError `not-found`. */
  batch(id: string): BatchStatus {
    return this.#book.find(id).status;
  }

  /** Where a group belongs, for trainers. `isAlone`: its reader takes no groups of other batches. */
  placeOf({ batch: id, groupIndex }: GroupEntry, isAlone: boolean): TrainerGroupPlace {
    const { number, request } = this.#book.find(id);
    const { dir, setup } = this.#options;
    const temperature = request.sampling.temperature ?? setup.sampling.temperature;
    return {
      ...{ folder: batchFolder(dir, id), groupIndex },
      ...(temperature !== undefined && { temperature }),
      ...(!isAlone && { batchNumber: number }),
    };
  }

  /** All batches, oldest first. */
  get batches(): readonly BatchStatus[] {
    return this.#book.all.map(({ status }) => status);
  }

  /** Gives up what is not finished of a batch. */
  async cancel(id: string): Promise<BatchStatus> {
    const batch = this.#book.find(id);
    if (!batch.hasEnded) {
      this.#requireRunning();
      this.#schedule.drop(batch);
      batch.state = "cancelled";
      batch.callOff?.();
      await this.#append({ type: "batch-ended", batch: id, state: "cancelled" });
      const reason = new DOMException("the batch was cancelled", "AbortError");
      batch.stop.abort(reason);
      batch.handOver.abort(reason);
      this.groups.wake();
      this.#takerOf(batch)?.onCancelled?.(batch.request.key);
    }
    await batch.playing;
    this.#book.forgetEnded(batch);
    return batch.status;
  }

  async cancelAll(): Promise<readonly BatchStatus[]> {
    await Promise.all(this.#book.all.map(async ({ id }) => await this.cancel(id)));
    return this.batches;
  }

  /**
   * Forgets the groups up to a cursor, of all batches or of one: without a cursor, all of one that has ended.
   *
   * @returns the cursor.
   * @throws ServiceError `bad-request` for a cursor that no group has yet, or where it is missing;
   *   `not-found` for an unknown batch.
   */
  async acknowledge({ cursor, batch }: Acknowledgement): Promise<number> {
    const { lastCursor } = this.groups;
    const found = batch === undefined ? undefined : this.#book.find(batch);
    if (cursor === undefined && found?.hasEnded !== true) {
      const message = `"cursor" is missing: it is needed, but for a "batch" that has ended`;
      throw new ServiceError("bad-request", message);
    }
    const upTo = cursor ?? lastCursor;
    if (upTo > lastCursor) {
      throw new ServiceError(
        "bad-request",
        `"cursor" is wrong: the newest group has ${lastCursor}`,
      );
    }
    await this.#orFail(this.groups.acknowledge(upTo, batch));
    return upTo;
  }

  /** Ends the sampling under way, to be gone on with; resolves once the engine is idle. */
  async pause(): Promise<void> {
    this.#requireRunning();
    await this.#weights.pause();
  }

  /** @throws ServiceError `engine-failed` while the engine's servers may have different weights. */
  async resume(): Promise<void> {
    this.#requireRunning();
    await this.#weights.resume();
  }

  /**
   * Announces a version of the policy, and has the engine load its weights where they are named.
   *
   * @throws ServiceError `version-not-newer`, `bad-request` or `engine-failed`.
   */
  async announce(announced: Announcement): Promise<void> {
    this.#requireRunning();
    await this.#weights.announce(announced, () => this.#book.open.size > 0);
    this.#schedule.advance();
  }

  /** Accepts nothing more and lets streams end; what is played comes to rest. */
  stop(): void {
    this.#stop.abort(new DOMException("the service is stopping", "AbortError"));
    for (const batch of this.#book.open) batch.callOff?.();
    this.groups.wake();
  }

  /** Stops what is played, which the next start goes on with, and gives the folder back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await using _lock = this.#lock;
    await using _journal = this.#journal;
    await using _places = this.#places;
    this.stop();
    await this.#schedule.rest();
    await this.#remote?.[Symbol.asyncDispose]();
  }

  #restore(entries: readonly ServiceEntry[]): void {
    const book = this.#book;
    for (const entry of entries) {
      if (entry.type === "batch") {
        const { request, atMs, taker } = entry;
        book.claimKey(book.add({ request, atMs, taker }), Promise.resolve());
      } else if (entry.type === "group") {
        this.groups.restore(entry);
        book.get(entry.batch)?.delivered.add(entry.groupIndex);
      } else if (entry.type === "batch-ended") {
        const batch = book.get(entry.batch);
        if (batch !== undefined) batch.state = entry.state;
      } else if (entry.type === "acknowledged") {
        this.groups.restoreAcknowledged(entry.cursor, entry.batch);
      }
    }
    this.#weights.restore(entries);
    for (const batch of book.all) {
      if (batch.hasEnded) book.forgetEnded(batch);
      else this.#schedule.add(batch);
    }
  }

  /** Cancels what an earlier start was asked for by someone who does not wait any more. */
  async #dropUnawaited(): Promise<void> {
    for (const batch of [...this.#book.open]) {
      if (this.#takerOf(batch)?.waitsOn === false) await this.cancel(batch.id);
    }
  }

  #takerOf({ taker }: Batch): Taker | undefined {
    return taker === undefined ? undefined : this.#options.takers?.[taker];
  }

  #mayBegin(batch: Batch): boolean {
    // Its taker may come with a later start.
    if (batch.taker !== undefined && this.#takerOf(batch) === undefined) return false;
    const { minPolicyVersion = -1, engine } = batch.request;
    // A later start may be told of it again.
    if (this.#policy.engineAt(engine) === undefined) return false;
    return (this.#policy.version ?? -1) >= minPolicyVersion;
  }

  #requireRunning(): void {
    if (!this.#stop.signal.aborted) return;
    throw new ServiceError("stopping", "The service is stopping: call again when it is back");
  }

  /** Nothing is sent to an address that the service was not started with: a caller cannot have it call others. */
  #requireEngine({ engine }: BatchRequest): void {
    if (this.#policy.engineAt(engine) !== undefined) return;
    throw new ServiceError(
      "forbidden",
      '"engine" is not allowed: the service samples only at the addresses that it was started with ' +
        "(--url, or --batch-engine for those that batches may name)",
    );
  }

  async #append(entry: ServiceEntry): Promise<void> {
    await this.#orFail(this.#journal.append(entry));
  }

  /** What the disk refuses ends the service: it could promise nothing any more. */
  async #orFail<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#fail(error);
      throw error;
    }
  }
}
