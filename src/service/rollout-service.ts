import { makeFolder } from "../internal/make-folder.ts";
import path from "node:path";
import { setMaxListeners } from "node:events";
import { isDeepStrictEqual } from "node:util";
import { RolloutError, UsageError } from "../errors.ts";
import type { Weights } from "../engine/weight-servers.ts";
import { systemClock, type Clock } from "../internal/clock.ts";
import type { Redactor } from "../internal/redactor.ts";
import { withResolvers } from "../internal/with-resolvers.ts";
import type { SamplingParameters } from "../engine/engine.ts";
import type { AttemptPlayer } from "../run/attempt-player.ts";
import { createAdmissionGate } from "../run/admission.ts";
import type { RecordPolicy } from "../run/read-recording.ts";
import type { RunManifest } from "../run/run-folder.ts";
import { RunLock, type LockOptions } from "../run/run-lock.ts";
import type { StartRunOptions } from "../run/start-run-options.ts";
import type { BatchRequest } from "./batch-request.ts";
import type { PlayedGroup, Taker, Takers } from "./batch-taker.ts";
import { Batch, drawTasks, planBatch, type BatchStatus } from "./batch.ts";
import { describeGroup } from "./describe-group.ts";
import { GroupStore } from "./group-store.ts";
import { playBatch } from "./play-batch.ts";
import { PolicyControl, type RemoteSampling } from "./policy-control.ts";
import { openServiceJournal, type ServiceEntry, type ServiceJournal } from "./service-journal.ts";
import { ServiceError } from "./service-error.ts";

/** What a service plays with, and where it keeps what it accepted. */
export interface RolloutServiceOptions {
  /** The data folder: one process at a time; the next start on it goes on. */
  readonly dir: string;
  readonly setup: StartRunOptions["setup"];
  /** What the folders of all batches say in `run.json`. */
  readonly manifest: RunManifest;
  /** Attempts at once, over all batches. */
  readonly concurrency: number;
  /** Plays of an attempt before its failure is final. */
  readonly attempts: number;
  /** Attempts that may be accepted and unfinished. */
  readonly maxQueued: number;
  readonly record?: RecordPolicy;
  readonly redactor?: Redactor;
  /** How the engine's weights are changed. Absent where it cannot be told to. */
  readonly weights?: WeightControl;
  /** Who is given groups by another way than `/v1/groups`. */
  readonly takers?: Takers;
  readonly lock?: Omit<LockOptions, "files">;
  readonly clock?: Clock;
  /** Opens the way to those who play elsewhere, once the folder is this process's. Default: this process. */
  readonly openRemote?: () => Promise<RemotePlayers>;
}

/** Those who play the attempts of batches elsewhere. */
export interface RemotePlayers extends AsyncDisposable {
  readonly policy: RemoteSampling;
  /** `name` parts rollouts of one name; `deadlineAtMs` is in milliseconds since the epoch. */
  player(scope: {
    readonly name: string;
    readonly sampling: SamplingParameters;
    readonly deadlineAtMs?: number;
  }): AttemptPlayer;
}

/** Changes the weights of an engine. */
export interface WeightControl {
  /**
   * Has the engine load weights.
   *
   * @throws RolloutError where it does not; it has the ones before then, except with the code
   *   `engine/mixed-weights`: nothing may be sampled then.
   */
  load(weights: Weights): Promise<void>;
  /** Whether the engine is sure to have them already. */
  have(weights: Weights): Promise<boolean>;
}

/** How the service is. JSON-able. */
export interface ServiceHealth {
  readonly state: "running" | "paused" | "stopping";
  readonly environment: string;
  readonly policyVersion: number | null;
  readonly batches: number;
  readonly queuedAttempts: number;
  readonly runningAttempts: number;
  readonly unreadGroups: number;
}

/** How the engine's loader names servers that have different weights. */
const mixedWeights = "engine/mixed-weights";

const mixedMessage =
  "The engine's servers may have different weights: sampling stays paused until others were announced that " +
  "all of them load, and resumed";

/** Batches that are played at once, so that the last attempts of one leave no place empty. */
const batchesAtOnce = 8;

/** Where batches are small, more of them, until as many attempts wait as have a place; no more than this. */
const mostBatchesAtOnce = 512;

/** Plays batches of rollouts that others ask for, and keeps their groups until they are taken. */
export class RolloutService implements AsyncDisposable {
  readonly groups: GroupStore;
  /** Rejects where the service cannot go on, such as on a full disk. Never resolves. */
  readonly failed: Promise<never>;
  readonly #fail: (reason: unknown) => void;
  readonly #options: RolloutServiceOptions;
  readonly #lock: RunLock;
  readonly #remote: RemotePlayers | undefined;
  readonly #journal: ServiceJournal;
  readonly #policy: PolicyControl;
  readonly #places: ReturnType<typeof createAdmissionGate>;
  readonly #batches = new Map<string, Batch>();
  /** Those that have not ended. */
  readonly #open = new Set<Batch>();
  #acceptedCount = 0;
  readonly #byKey = new Map<string, { readonly batch: Batch; readonly accepted: Promise<void> }>();
  readonly #stop = new AbortController();
  /** Accepted and not begun, oldest first. */
  #queue: Batch[] = [];
  readonly #playing = new Set<Batch>();
  #weights: string | undefined;
  readonly #outcomes = new Map<string, number>();
  /** Whether the engine's servers may have different weights. */
  #isMixed = false;

  private constructor(
    options: RolloutServiceOptions,
    open: {
      readonly lock: RunLock;
      readonly journal: ServiceJournal;
      readonly remote: RemotePlayers | undefined;
    },
  ) {
    this.#remote = open.remote;
    this.#options = options;
    this.#lock = open.lock;
    this.#journal = open.journal;
    this.#policy = new PolicyControl(options.setup.engine, open.remote?.policy);
    this.#places = createAdmissionGate({ concurrency: options.concurrency });
    this.groups = new GroupStore(path.join(options.dir, "groups"), { journal: open.journal });
    const { promise, reject } = withResolvers<never>();
    this.failed = promise;
    this.#fail = reject;
    // Whoever awaits it is told.
    promise.catch(() => {});
    setMaxListeners(0, this.#stop.signal);
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
      await service.#reloadWeights(entries);
      await service.groups.tidy();
      service.#schedule();
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
    const open = attemptsOf(this.#open);
    const running = this.#places.state.admitted;
    const calm = this.#policy.isPaused ? "paused" : "running";
    return {
      state: this.#stop.signal.aborted ? "stopping" : calm,
      environment: this.#options.setup.environment.name,
      policyVersion: this.#policy.version ?? null,
      batches: this.#open.size,
      queuedAttempts: Math.max(0, open - running),
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
    const known = await this.#knownBatch(request, taker);
    if (known !== undefined) return known;
    this.#requireRunning();
    this.#requireRoom(request);
    await drawTasks(planBatch(this.#options.setup.environment, request));
    // Meanwhile the same may have been asked for, or all been stopped.
    const raced = await this.#knownBatch(request, taker);
    if (raced !== undefined) return raced;
    this.#requireRunning();
    this.#requireRoom(request);
    const atMs = this.#options.setup.now();
    const batch = this.#add({ request, atMs, taker });
    const by = taker === undefined ? {} : { taker };
    const accepted = this.#append({ type: "batch", batch: batch.id, atMs, request, ...by });
    this.#byKey.set(keyOf(batch), { batch, accepted });
    await accepted;
    this.#enqueue(batch);
    this.#schedule();
    return { status: batch.status, isNew: true };
  }

  /** Attempts of groups that were told since this start, by outcome. */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#outcomes;
  }

  /** @throws ServiceError `not-found`. */
  batch(id: string): BatchStatus {
    return this.#find(id).status;
  }

  /** All batches, oldest first. */
  get batches(): readonly BatchStatus[] {
    return Array.from(this.#batches.values(), ({ status }) => status);
  }

  /** Gives up what is not finished of a batch. */
  async cancel(id: string): Promise<BatchStatus> {
    const batch = this.#find(id);
    if (!batch.hasEnded) {
      this.#requireRunning();
      this.#queue = this.#queue.filter((other) => other !== batch);
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
    this.#forgetEnded(batch);
    return batch.status;
  }

  async cancelAll(): Promise<readonly BatchStatus[]> {
    await Promise.all(Array.from(this.#batches.keys(), async (id) => await this.cancel(id)));
    return this.batches;
  }

  /** @throws ServiceError `bad-request` for a cursor that no group has yet. */
  async acknowledge(cursor: number): Promise<void> {
    const { lastCursor } = this.groups;
    if (cursor > lastCursor) {
      throw new ServiceError(
        "bad-request",
        `"cursor" is wrong: the newest group has ${lastCursor}`,
      );
    }
    await this.#orFail(this.groups.acknowledge(cursor));
  }

  /** Ends the sampling under way, to be gone on with; resolves once the engine is idle. */
  async pause(): Promise<void> {
    this.#requireRunning();
    await this.#policy.pause(() => this.#append({ type: "paused", isPaused: true }));
  }

  /** @throws ServiceError `engine-failed` while the engine's servers may have different weights. */
  async resume(): Promise<void> {
    this.#requireRunning();
    if (this.#isMixed) throw new ServiceError("engine-failed", mixedMessage);
    await this.#policy.resume(() => this.#append({ type: "paused", isPaused: false }));
  }

  /**
   * Announces a version of the policy, and has the engine load its weights where they are named.
   *
   * @throws ServiceError `version-not-newer`, `bad-request` or `engine-failed`.
   */
  async announce(version: number, weights?: string): Promise<void> {
    this.#requireRunning();
    if (weights !== undefined && this.#options.weights === undefined) {
      const message =
        `"weights" is wrong: the service cannot have this engine (${this.#options.setup.engine.kind}) ` +
        "load any; update it yourself and announce the version without them";
      throw new ServiceError("bad-request", message);
    }
    await this.#policy.update(version, {
      check: () => this.#isNewVersion(version, weights),
      update: async () => {
        if (weights !== undefined) await this.#load(version, weights);
        await this.#append({ type: "policy", version, ...(weights !== undefined && { weights }) });
        this.#weights = weights;
        if (weights !== undefined) this.#isMixed = false;
      },
    });
    this.#schedule();
  }

  /** Accepts nothing more and lets streams end; what is played comes to rest. */
  stop(): void {
    this.#stop.abort(new DOMException("the service is stopping", "AbortError"));
    for (const batch of this.#open) batch.callOff?.();
    this.groups.wake();
  }

  /** Stops what is played, which the next start goes on with, and gives the folder back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await using _lock = this.#lock;
    await using _journal = this.#journal;
    await using _places = this.#places;
    this.stop();
    for (const batch of this.#playing) await batch.playing;
    await this.#remote?.[Symbol.asyncDispose]();
  }

  /** Has the engine load weights; what the journal says of it lets the next start know how far this came. */
  async #load(version: number, weights: string): Promise<void> {
    await this.#append({ type: "policy-loading", version, weights });
    try {
      await this.#options.weights!.load({ path: weights, version: String(version) });
    } catch (error) {
      // An outage is told and gone on from.
      if (!(error instanceof RolloutError)) throw error;
      if (error.code !== mixedWeights) await this.#append({ type: "policy-kept" });
      else
        await this.#policy.holdAfterUpdate(() => this.#append({ type: "paused", isPaused: true }));
      this.#isMixed ||= error.code === mixedWeights;
      const message = this.#isMixed ? `${error.message}. ${mixedMessage}` : error.message;
      throw new ServiceError("engine-failed", message, { cause: error });
    }
  }

  /**
   * Sees to it that the engine has the weights that were announced last: one in this process begins with
   * those that it was started with, and servers may have been started again.
   *
   * @throws UsageError where it does not load them.
   */
  async #reloadWeights(entries: readonly ServiceEntry[]): Promise<void> {
    const { weights: control } = this.#options;
    const last = entries.findLast(({ type }) => type.startsWith("policy"));
    if (control === undefined || last === undefined) return;
    // A start that was loading when it ended may have told some servers: all are told again.
    const wasLoading = last.type === "policy-loading" ? last : undefined;
    const version = wasLoading?.version ?? this.#policy.version;
    const path = wasLoading?.weights ?? this.#weights;
    if (version === undefined || path === undefined) return;
    const weights: Weights = { path, version: String(version) };
    try {
      if (wasLoading !== undefined || !(await control.have(weights))) await control.load(weights);
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      throw new UsageError(
        `Cannot go on with the policy's version ${version}: ${error.message}; see to it that the engine ` +
          "can load these weights, or choose another --out",
        { cause: error },
      );
    }
    if (wasLoading === undefined) return;
    await this.#journal.append({ type: "policy", version, weights: path });
    this.#weights = path;
    this.#policy.restore(version, this.#policy.isPaused);
  }

  #restore(entries: readonly ServiceEntry[]): void {
    let isPaused = false;
    let version: number | undefined;
    for (const entry of entries) {
      if (entry.type === "batch") {
        const { request, atMs, taker } = entry;
        const batch = this.#add({ request, atMs, taker });
        this.#byKey.set(keyOf(batch), { batch, accepted: Promise.resolve() });
      } else if (entry.type === "group") {
        this.groups.restore(entry);
        this.#batches.get(entry.batch)?.delivered.add(entry.groupIndex);
      } else if (entry.type === "batch-ended") {
        const batch = this.#batches.get(entry.batch);
        if (batch !== undefined) batch.state = entry.state;
      } else if (entry.type === "acknowledged") this.groups.restoreAcknowledged(entry.cursor);
      else if (entry.type === "paused") isPaused = entry.isPaused;
      else if (entry.type === "policy") {
        version = entry.version;
        this.#weights = entry.weights;
      }
    }
    this.#policy.restore(version, isPaused);
    for (const batch of [...this.#batches.values()]) {
      if (batch.hasEnded) this.#forgetEnded(batch);
      else this.#enqueue(batch);
    }
  }

  /** Cancels what an earlier start was asked for by someone who does not wait any more. */
  async #dropUnawaited(): Promise<void> {
    for (const batch of [...this.#open]) {
      if (this.#takerOf(batch)?.waitsOn === false) await this.cancel(batch.id);
    }
  }

  #add(about: Pick<Batch, "request" | "atMs" | "taker">): Batch {
    this.#acceptedCount += 1;
    const batch = new Batch({ number: this.#acceptedCount, ...about });
    this.#batches.set(batch.id, batch);
    this.#open.add(batch);
    return batch;
  }

  /** One that has ended is remembered for who asks for it by its key; a taker does not. */
  #forgetEnded(batch: Batch): void {
    if (!batch.hasEnded) return;
    this.#open.delete(batch);
    if (batch.taker === undefined) return;
    this.#batches.delete(batch.id);
    this.#byKey.delete(keyOf(batch));
  }

  #takerOf({ taker }: Batch): Taker | undefined {
    return taker === undefined ? undefined : this.#options.takers?.[taker];
  }

  /** The batch that has the key already. */
  async #knownBatch(
    request: BatchRequest,
    taker: string | undefined,
  ): Promise<{ readonly status: BatchStatus; readonly isNew: false } | undefined> {
    const known = this.#byKey.get(keyOf({ request, taker }));
    if (known === undefined) return undefined;
    if (!isDeepStrictEqual(known.batch.request, request)) {
      const message = `The key was used for ${known.batch.id}, which asked for something else`;
      throw new ServiceError("key-reused", message);
    }
    await known.accepted;
    return { status: known.batch.status, isNew: false };
  }

  #find(id: string): Batch {
    const batch = this.#batches.get(id);
    if (batch === undefined) throw new ServiceError("not-found", "There is no such batch");
    return batch;
  }

  #requireRunning(): void {
    if (!this.#stop.signal.aborted) return;
    throw new ServiceError("stopping", "The service is stopping: call again when it is back");
  }

  #requireRoom({ tasks, samples }: BatchRequest): void {
    const open = attemptsOf(this.#open);
    const { maxQueued } = this.#options;
    if (open + tasks.length * samples <= maxQueued) return;
    throw new ServiceError(
      "queue-full",
      `${open} attempts are accepted and unfinished, at most ${maxQueued} may be: submit again later`,
    );
  }

  #isNewVersion(version: number, weights: string | undefined): boolean {
    const { version: current } = this.#policy;
    if (current === undefined || version > current) return true;
    if (version === current && weights === this.#weights) return false;
    throw new ServiceError(
      "version-not-newer",
      version === current
        ? `Version ${version} was announced with other weights`
        : `The policy has the version ${current}: expected a higher one than ${version}`,
    );
  }

  #enqueue(batch: Batch): void {
    this.#queue.push(batch);
    const { deadlineS } = batch.request;
    if (deadlineS === undefined) return;
    const restMs = batch.atMs + deadlineS * 1000 - this.#options.setup.now();
    const { clock = systemClock } = this.#options;
    batch.callOff = clock.after(Math.max(0, restMs), () => {
      batch.isLate = true;
      batch.stop.abort(new DOMException("the batch's deadline is over", "TimeoutError"));
      // Nothing of it is played any more, so it needs no place.
      if (this.#queue.includes(batch)) this.#begin(batch);
    });
  }

  /** Begins the oldest batches that may be played, as far as there are places. */
  #schedule(): void {
    for (const batch of [...this.#queue]) {
      if (this.#isFull || this.#stop.signal.aborted) return;
      // Its taker may come with a later start.
      if (batch.taker !== undefined && this.#takerOf(batch) === undefined) continue;
      const { minPolicyVersion = -1 } = batch.request;
      if ((this.#policy.version ?? -1) >= minPolicyVersion) this.#begin(batch);
    }
  }

  get #isFull(): boolean {
    const { size } = this.#playing;
    if (size < batchesAtOnce) return false;
    return size >= mostBatchesAtOnce || attemptsOf(this.#playing) >= 2 * this.#options.concurrency;
  }

  #begin(batch: Batch): void {
    if (this.#stop.signal.aborted) return;
    this.#queue = this.#queue.filter((other) => other !== batch);
    batch.state = "running";
    this.#playing.add(batch);
    batch.playing = this.#orFail(this.#play(batch))
      .catch(() => {})
      .finally(() => {
        this.#playing.delete(batch);
        this.#forgetEnded(batch);
        this.#schedule();
      });
  }

  async #play(batch: Batch): Promise<void> {
    const { setup, manifest, concurrency, attempts, record, redactor, lock } = this.#options;
    const { deadlineS } = batch.request;
    const player = this.#remote?.player({
      name: batch.id,
      sampling: { ...setup.sampling, ...batch.request.sampling },
      ...(deadlineS !== undefined && { deadlineAtMs: batch.atMs + deadlineS * 1000 }),
    });
    const onStop = (): void => {
      batch.stop.abort(this.#stop.signal.reason);
      batch.handOver.abort(this.#stop.signal.reason);
    };
    this.#stop.signal.addEventListener("abort", onStop, { once: true });
    try {
      const isWhole = await playBatch(batch, {
        dir: path.join(this.#options.dir, "batches", batch.id),
        setup: { ...setup, engine: this.#policy.engine },
        ...{ manifest, concurrency, attempts, places: this.#places },
        folder: { ...(record && { record }), ...(lock && { lock }) },
        ...(redactor && { redactor }),
        ...(player && { player }),
        deliver: async (groupIndex, group) => {
          if (!(await this.#deliver(batch, groupIndex, group))) return;
          batch.delivered.add(groupIndex);
        },
      });
      if (!isWhole || batch.hasEnded) return;
      // It follows from what is on the disk already, and a cancellation comes too late from here on.
      batch.state = "finished";
      batch.callOff?.();
      await this.#journal.append({ type: "batch-ended", batch: batch.id, state: "finished" });
      this.groups.wake();
    } finally {
      this.#stop.signal.removeEventListener("abort", onStop);
    }
  }

  /** False where its taker is not to go on: the next start hands the group over again. */
  async #deliver(batch: Batch, groupIndex: number, group: PlayedGroup): Promise<boolean> {
    const { id, request, handOver } = batch;
    const taker = this.#takerOf(batch);
    for (const attempt of group.attempts) {
      const outcome = attempt.type === "played" ? attempt.episode.outcome : "aborted";
      this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
    }
    if (taker === undefined) {
      const told = describeGroup(group, { batch: id, key: request.key });
      await this.groups.add({ batch: id, groupIndex }, told);
      return true;
    }
    try {
      await taker.take(group, { key: request.key, signal: handOver.signal });
    } catch (error) {
      if (handOver.signal.aborted) return false;
      throw error;
    }
    return true;
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

/** Attempts that are accepted and in no group that was told. */
function attemptsOf(batches: Iterable<Batch>): number {
  let sum = 0;
  for (const { openAttempts } of batches) sum += openAttempts;
  return sum;
}

/** Whoever takes groups has keys of its own. */
function keyOf({ request, taker }: Pick<Batch, "request" | "taker">): string {
  return JSON.stringify([taker ?? "", request.key]);
}
