import { systemClock } from "../async/clock.ts";
import { BatchRegistry } from "./batch-registry.ts";
import { BatchConduct, type ConductParts } from "./batch-conduct.ts";
import type { BatchRequest } from "./batch-request.ts";
import { BatchSchedule } from "./batch-schedule.ts";
import { takerOf } from "./batch-taker.ts";
import { drawTasks, planBatch, type Batch, type BatchStatus } from "./batch.ts";
import { ServiceError } from "./service-error.ts";
import type { ServiceEntry } from "./service-journal.ts";
import type { ServiceMemory } from "./service-memory.ts";

/** Accepts, schedules and cancels batches. */
export class BatchIntake {
  readonly registry = new BatchRegistry();
  readonly #parts: ConductParts;
  readonly #memory: ServiceMemory;
  readonly #conduct: BatchConduct;
  readonly #schedule: BatchSchedule;

  constructor(parts: ConductParts, memory: ServiceMemory) {
    const { options, stopped } = parts;
    const { concurrency, clock = systemClock, setup } = options;
    this.#parts = parts;
    this.#memory = memory;
    this.#conduct = new BatchConduct(parts);
    this.#schedule = new BatchSchedule({
      concurrency,
      clock,
      now: setup.now,
      stopped,
      mayBegin: (batch) => this.#mayBegin(batch),
      play: async (batch) => await memory.orFail(this.#conduct.play(batch)).catch(() => {}),
      onRest: (batch) => this.registry.forgetEnded(batch),
    });
  }

  /** The number of attempts in groups delivered since this start, by outcome. */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#conduct.outcomes;
  }

  /** Restores the batches of earlier starts. `advance()` starts them. */
  restore(entries: readonly ServiceEntry[]): void {
    const { registry } = this;
    for (const entry of entries) {
      if (entry.type === "batch") {
        const { request, atMs, taker } = entry;
        registry.claimKey(registry.add({ request, atMs, taker }), Promise.resolve());
      } else if (entry.type === "group") {
        registry.get(entry.batch)?.delivered.add(entry.groupIndex);
      } else if (entry.type === "batch-ended") {
        const batch = registry.get(entry.batch);
        if (batch === undefined) continue;
        batch.state = entry.state;
        batch.reason = entry.reason;
      }
    }
    for (const batch of registry.all) {
      if (batch.hasEnded) registry.forgetEnded(batch);
      else this.#schedule.add(batch);
    }
  }

  /** Cancels the batches of earlier starts for callers that do not wait after a restart, such as NeMo Gym. */
  async dropUnawaited(): Promise<void> {
    const { takers } = this.#parts.options;
    for (const batch of Array.from(this.registry.open)) {
      if (takerOf(batch, takers)?.waitsOn === false) await this.cancel(batch.id);
    }
  }

  /** Starts batches that may play now, up to the limit of concurrent batches. */
  advance(): void {
    this.#schedule.advance();
  }

  /** Resolves when no batch is running. */
  async rest(): Promise<void> {
    await this.#schedule.rest();
  }

  /** See `RolloutService.submit()`. */
  async submit(
    request: BatchRequest,
    taker: string | undefined,
  ): Promise<{ readonly status: BatchStatus; readonly isNew: boolean }> {
    const { registry } = this;
    const { setup, maxQueued } = this.#parts.options;
    const known = await registry.known(request, taker);
    if (known !== undefined) return known;
    this.requireRunning();
    this.#requireEngine(request);
    registry.requireRoom(request, maxQueued);
    await drawTasks(planBatch(setup.environment, request));
    // During the wait, another caller may have submitted the same batch, or the service may have
    // stopped.
    const raced = await registry.known(request, taker);
    if (raced !== undefined) return raced;
    this.requireRunning();
    registry.requireRoom(request, maxQueued);
    const atMs = setup.now();
    const batch = registry.add({ request, atMs, taker });
    const by = taker === undefined ? {} : { taker };
    const entry: ServiceEntry = { type: "batch", batch: batch.id, atMs, request, ...by };
    const accepted = this.#memory.append(entry);
    registry.claimKey(batch, accepted);
    await accepted;
    // The batch may have been cancelled during the wait. `add()` then ignores it.
    this.#schedule.add(batch);
    this.#schedule.advance();
    return { status: batch.status, isNew: true };
  }

  /** Cancels the unfinished part of a batch. Resolves once none of its attempts is running. */
  async cancel(id: string): Promise<BatchStatus> {
    const batch = this.registry.find(id);
    if (!batch.hasEnded) {
      const { options, groups, stopped: signal } = this.#parts;
      this.requireRunning();
      this.#schedule.drop(batch);
      batch.state = "cancelled";
      batch.reason = undefined;
      batch.callOff?.();
      await this.#memory.append({ type: "batch-ended", batch: id, state: "cancelled" });
      const reason = new DOMException("the batch was cancelled", "AbortError");
      batch.stop.abort(reason);
      batch.handOver.abort(reason);
      groups.wake();
      takerOf(batch, options.takers)?.onCancelled?.(batch.request.key, undefined, { signal });
    }
    await batch.playing;
    this.registry.forgetEnded(batch);
    return batch.status;
  }

  /**
   * Requires that the service is not stopping.
   *
   * @throws ServiceError `stopping`.
   */
  requireRunning(): void {
    if (!this.#parts.stopped.aborted) return;
    throw new ServiceError("stopping", "The service is stopping: call again when it is back");
  }

  #mayBegin(batch: Batch): boolean {
    const { options, policy } = this.#parts;
    // A later start may have the batch's taker. Other readers never get its groups, even after the
    // deadline.
    if (batch.taker !== undefined && takerOf(batch, options.takers) === undefined) return false;
    // The batch samples no more turns.
    if (batch.isLate) return true;
    // The batch met a problem in this start, for example because its tasks have changed. A later
    // start may play it.
    if (batch.reason !== undefined) return false;
    const { minPolicyVersion = -1, engine } = batch.request;
    // A later start may have the engine that the batch names.
    if (policy.engineAt(engine) === undefined) return false;
    return (policy.version ?? -1) >= minPolicyVersion;
  }

  /**
   * Rejects an engine that the service was not started with, so that a caller cannot make the
   * service call other addresses.
   * @throws ServiceError `forbidden`.
   */
  #requireEngine({ engine }: BatchRequest): void {
    if (this.#parts.policy.engineAt(engine) !== undefined) return;
    throw new ServiceError(
      "forbidden",
      '"engine" is not allowed: leave it out to sample at the service\'s own engine, or have the ' +
        "service started with --batch-engine ADDRESS",
    );
  }
}
