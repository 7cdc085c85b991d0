import { rendererOf } from "../episode/renderer-of.ts";
import path from "node:path";
import { setMaxListeners } from "node:events";
import { makeFolder } from "../files/make-folder.ts";
import { createAdmissionGate } from "../run/schedule/admission.ts";
import { RunLock } from "../run/disk/run-lock.ts";
import { attemptsOf } from "./batch-registry.ts";
import { batchFolder } from "./batch-conduct.ts";
import { BatchIntake } from "./batch-intake.ts";
import type { BatchRequest } from "./batch-request.ts";
import type { BatchStatus } from "./batch.ts";
import { startDoctorThread } from "../doctor/live/thread/start-doctor.ts";
import { defaultDoctorBytes, defaultDoctorTokens, ServiceDoctor } from "./doctor/service-doctor.ts";
import { GroupStore } from "./group-store.ts";
import { PolicyControl } from "./policy-control.ts";
import { policyAtStart, readPolicyMemory } from "./policy-memory.ts";
import { PolicyWeights, type Announcement } from "./policy-weights.ts";
import type {
  Acknowledgement,
  RemotePlayers,
  RolloutServiceOptions,
  ServiceHealth,
} from "./rollout-service-options.ts";
import { ServiceColumns } from "./service-columns.ts";
import { ServiceError } from "./service-error.ts";
import { openServiceJournal, type GroupEntry, type ServiceJournal } from "./service-journal.ts";
import { ServiceMemory } from "./service-memory.ts";
import { TrainerGroups, type TrainerGroupPlace } from "./trainer-groups.ts";

/**
 * Plays batches of rollouts that callers submit, and stores their groups until a caller
 * acknowledges them.
 */
export class RolloutService implements AsyncDisposable {
  readonly groups: GroupStore;
  readonly trainerGroups: TrainerGroups;
  readonly columns: ServiceColumns;
  readonly doctor: ServiceDoctor;
  readonly #options: RolloutServiceOptions;
  readonly #lock: RunLock;
  readonly #remote: RemotePlayers | undefined;
  readonly #memory: ServiceMemory;
  readonly #policy: PolicyControl;
  readonly #weights: PolicyWeights;
  readonly #places: ReturnType<typeof createAdmissionGate>;
  readonly #intake: BatchIntake;
  readonly #stop = new AbortController();

  private constructor(
    options: RolloutServiceOptions,
    open: {
      readonly lock: RunLock;
      readonly journal: ServiceJournal;
      readonly remote: RemotePlayers | undefined;
    },
  ) {
    const { setup, concurrency, batchEngines: others, weights: control } = options;
    const { engine } = setup;
    const { codec } = rendererOf(setup);
    const { journal, remote } = open;
    const memory = new ServiceMemory(journal);
    const policy = new PolicyControl(engine, {
      ...(others && { others }),
      remote: remote?.policy,
      graceMs: setup.limits.graceTimeoutMs,
      ...(setup.clock && { clock: setup.clock }),
    });
    const append: ServiceJournal["append"] = async (entry) => await memory.append(entry);
    this.#options = options;
    this.#remote = remote;
    this.#lock = open.lock;
    this.#memory = memory;
    this.#policy = policy;
    this.#weights = new PolicyWeights({
      policy,
      control,
      engineKind: engine.kind,
      append,
      orFail: async (work) => await memory.orFail(work),
    });
    this.#places = createAdmissionGate({ concurrency });
    this.groups = new GroupStore(path.join(options.dir, "groups"), { journal });
    this.trainerGroups = new TrainerGroups(async (ids) => await codec.decode(ids));
    const { groups } = this;
    const { tokenLimit = defaultDoctorTokens, columnBytes = defaultDoctorBytes } =
      options.doctor ?? {};
    const { start = startDoctorThread } = options.doctor ?? {};
    this.doctor = new ServiceDoctor({ runs: path.join(options.dir, "batches"), tokenLimit }, start);
    const { signal: stopped } = this.#stop;
    this.columns = new ServiceColumns({
      folderOf: (id) => batchFolder(options.dir, id),
      batches: () => this.#intake.registry.all,
      groups,
      keepsAll: options.keepsColumns ?? false,
      doctorBytes: () => (this.doctor.hasPosts ? columnBytes : 0),
    });
    const { columns } = this;
    const places = this.#places;
    const parts = { options, policy, remote, places, groups, columns, journal, stopped };
    this.#intake = new BatchIntake(parts, memory);
    setMaxListeners(0, stopped);
  }

  /**
   * Opens a data folder and resumes its batches.
   * @throws UsageError if another process uses the folder, or if it cannot be used.
   */
  static async open(asked: RolloutServiceOptions): Promise<RolloutService> {
    // Environments and users may change the working directory later.
    const dir = path.resolve(asked.dir);
    const options = { ...asked, dir };
    await makeFolder(path.join(dir, "groups"));
    await makeFolder(path.join(dir, "batches"));
    const lock = await RunLock.take(dir, options.lock);
    let journal: ServiceJournal | undefined;
    let remote: RemotePlayers | undefined;
    let service: RolloutService | undefined;
    try {
      const guard = (): Promise<void> => lock.confirm();
      const opened = await openServiceJournal(dir, { guard });
      journal = opened.journal;
      const { entries } = opened;
      const memory = readPolicyMemory(entries);
      remote = await options.openRemote?.(policyAtStart(memory, options.weights !== undefined));
      service = new RolloutService(options, { lock, journal, remote });
      service.groups.restoreAll(entries);
      service.#weights.restore(memory);
      service.#intake.restore(entries);
      await service.#intake.dropUnawaited();
      await service.#weights.reload(memory);
      await service.groups.tidy();
      if (options.setup.columns !== undefined) await service.columns.free();
      service.#intake.advance();
      return service;
    } catch (error) {
      // If the service exists, disposing it also releases its parts.
      if (service !== undefined) await service[Symbol.asyncDispose]();
      else {
        await remote?.[Symbol.asyncDispose]();
        await journal?.[Symbol.asyncDispose]();
        await lock[Symbol.asyncDispose]();
      }
      throw error;
    }
  }

  /**
   * Rejects if the service cannot continue, for example because the disk is full. Never resolves.
   */
  get failed(): Promise<never> {
    return this.#memory.failed;
  }

  /** Aborts when the service stops. */
  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  get health(): ServiceHealth {
    const { open } = this.#intake.registry;
    const running = this.#places.state.admitted;
    const calm = this.#policy.isPaused ? "paused" : "running";
    const { columns } = this.#options.setup;
    return {
      state: this.#stop.signal.aborted ? "stopping" : calm,
      environment: this.#options.setup.environment.name,
      policyVersion: this.#policy.version ?? null,
      batches: open.size,
      queuedAttempts: Math.max(0, attemptsOf(open) - running),
      runningAttempts: running,
      unreadGroups: this.groups.unreadCount,
      ...(columns !== undefined && { columns }),
    };
  }

  /** The number of attempts in groups delivered since this start, by outcome. */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#intake.outcomes;
  }

  /**
   * Accepts a batch. Resolves when the batch is in the journal.
   *
   * @param taker - The name of the `Taker` that gets the groups, instead of the readers of `/v1/groups`. Two takers may
   *   use the same key.
   * @returns the batch's status, and `isNew`: false if a batch with this key exists.
   * @throws ServiceError `bad-request`, `forbidden`, `key-reused`, `queue-full` or `stopping`.
   */
  async submit(
    request: BatchRequest,
    taker?: string,
  ): Promise<{ readonly status: BatchStatus; readonly isNew: boolean }> {
    return await this.#intake.submit(request, taker);
  }

  /**
   * Returns the status of a batch.
   * @throws ServiceError `not-found`.
   */
  batch(id: string): BatchStatus {
    return this.#intake.registry.find(id).status;
  }

  /** All batches, oldest first. */
  get batches(): readonly BatchStatus[] {
    return this.#intake.registry.all.map(({ status }) => status);
  }

  /** Cancels the unfinished part of a batch. */
  async cancel(id: string): Promise<BatchStatus> {
    return await this.#intake.cancel(id);
  }

  async cancelAll(): Promise<readonly BatchStatus[]> {
    await Promise.all(this.#intake.registry.all.map(async ({ id }) => await this.cancel(id)));
    return this.batches;
  }

  /**
   * Cancels the unfinished batches with keys that begin with a text, and forgets all groups of
   * those batches. Use it to start a lost job again.
   * @returns the number of cancelled batches.
   */
  async clear(keyPrefix: string): Promise<number> {
    const { registry } = this.#intake;
    const own = registry.all.filter(
      ({ taker, request }) => taker === undefined && request.key.startsWith(keyPrefix),
    );
    const unfinished = own.filter(({ hasEnded }) => !hasEnded);
    await Promise.all(unfinished.map(async ({ id }) => await this.cancel(id)));
    for (const { id } of own) await this.acknowledge({ batch: id });
    return unfinished.length;
  }

  /**
   * Returns a group's place for the conversion to a trainer's form. `isAlone`: the reader gets
   * groups of this batch only.
   */
  placeOf({ batch: id, groupIndex }: GroupEntry, isAlone: boolean): TrainerGroupPlace {
    const { number, request } = this.#intake.registry.find(id);
    const { dir, setup } = this.#options;
    const temperature = request.sampling.temperature ?? setup.sampling.temperature ?? 1;
    return {
      folder: batchFolder(dir, id),
      groupIndex,
      temperature,
      ...(!isAlone && { batchNumber: number }),
    };
  }

  /**
   * Forgets the groups up to a cursor, of all batches or of one. Without a cursor, forgets all
   * groups of a batch that has ended.
   * @returns the cursor.
   * @throws ServiceError `bad-request` for a missing cursor or one that no group has yet;
   *   `not-found` for an unknown batch.
   */
  async acknowledge({ cursor, batch }: Acknowledgement): Promise<number> {
    const { lastCursor } = this.groups;
    const found = batch === undefined ? undefined : this.#intake.registry.find(batch);
    if (cursor === undefined && found?.hasEnded !== true) {
      const message = `"cursor" is missing: it is needed, but for a "batch" that has ended`;
      throw new ServiceError("bad-request", message);
    }
    const upTo = cursor ?? lastCursor;
    if (upTo > lastCursor) {
      const message = `"cursor" is wrong: the newest group has ${lastCursor}`;
      throw new ServiceError("bad-request", message);
    }
    await this.#memory.orFail(this.groups.acknowledge(upTo, batch));
    if (this.#options.setup.columns !== undefined) await this.#memory.orFail(this.columns.free());
    return upTo;
  }

  /** Interrupts sampling until `resume()`. Interrupted turns continue after that. Resolves when the engine is idle. */
  async pause(): Promise<void> {
    this.#intake.requireRunning();
    await this.#weights.pause();
  }

  /**
   * Continues sampling.
   * @throws ServiceError `engine-failed` while the engine's servers may have different weights.
   */
  async resume(): Promise<void> {
    this.#intake.requireRunning();
    await this.#weights.resume();
  }

  /**
   * Announces a version of the policy, and makes the engine load its weights if they are named.
   * @throws ServiceError `version-not-newer`, `bad-request` or `engine-failed`.
   */
  async announce(announced: Announcement): Promise<void> {
    this.#intake.requireRunning();
    await this.#weights.announce(announced, () => this.#intake.registry.open.size > 0);
    this.#intake.advance();
  }

  /** Accepts no more requests, ends streams, and stops running attempts. */
  stop(): void {
    this.#stop.abort(new DOMException("the service is stopping", "AbortError"));
    for (const batch of this.#intake.registry.open) batch.callOff?.();
    this.groups.wake();
  }

  /** Stops running attempts, which the next start resumes, and releases the folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await using _lock = this.#lock;
    await using _journal = this.#memory.journal;
    await using _places = this.#places;
    await using _columns = this.columns;
    await using _doctor = this.doctor;
    this.stop();
    await this.#intake.rest();
    await this.#remote?.[Symbol.asyncDispose]();
  }
}
