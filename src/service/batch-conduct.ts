import path from "node:path";
import { assertInvariant } from "../errors.ts";
import type { AdmissionGate } from "../run/start-run-options.ts";
import { batchProblemIn, type BatchProblem } from "./batch-problem.ts";
import { takerOf, type PlayedGroup } from "./batch-taker.ts";
import type { Batch } from "./batch.ts";
import type { BatchColumns } from "./batch-columns.ts";
import { describeGroup } from "./describe-group.ts";
import type { GroupStore } from "./group-store.ts";
import { playBatch } from "./play-batch.ts";
import type { ServiceColumns } from "./service-columns.ts";
import type { PolicyControl } from "./policy-control.ts";
import type { RemotePlayers, RolloutServiceOptions } from "./rollout-service-options.ts";
import type { GroupEntry, ServiceJournal } from "./service-journal.ts";

/** The parts of the service that playing a batch needs. */
export interface ConductParts {
  readonly options: RolloutServiceOptions;
  readonly policy: PolicyControl;
  readonly remote: RemotePlayers | undefined;
  /** The gate that all batches share. It limits the attempts that play at the same time. */
  readonly places: AdmissionGate;
  readonly groups: GroupStore;
  readonly columns: ServiceColumns;
  readonly journal: ServiceJournal;
  /** Aborted when the service stops. Running attempts then stop too. */
  readonly stopped: AbortSignal;
}

/** Plays batches and delivers their groups: to the batch's `Taker`, or to the store for readers. */
export class BatchConduct {
  readonly #parts: ConductParts;
  readonly #outcomes = new Map<string, number>();

  constructor(parts: ConductParts) {
    this.#parts = parts;
  }

  /** The number of attempts in groups delivered since this start, by outcome. */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#outcomes;
  }

  /**
   * Plays the unfinished part of a batch and ends the batch. A batch that has a problem or that a
   * stopping service interrupts stays unfinished, for another start.
   */
  async play(batch: Batch): Promise<void> {
    const { options, policy, remote, places, groups, columns, journal, stopped } = this.#parts;
    const { setup, manifest, concurrency, attempts, record, redactor, lock } = options;
    const { deadlineS } = batch.request;
    const player = remote?.player({
      name: batch.id,
      sampling: { ...setup.sampling, ...batch.request.sampling },
      ...(deadlineS !== undefined && { deadlineAtMs: batch.atMs + deadlineS * 1000 }),
    });
    const onStop = (): void => {
      batch.stop.abort(stopped.reason);
      batch.handOver.abort(stopped.reason);
    };
    stopped.addEventListener("abort", onStop, { once: true });
    let ofBatch: BatchColumns | undefined;
    try {
      const isWhole = await playBatch(batch, {
        dir: batchFolder(options.dir, batch.id),
        // The service's own engine stands in for a missing one: a batch after its deadline samples
        // nothing.
        setup: { ...setup, engine: policy.engineAt(batch.request.engine) ?? policy.engineAt()! },
        manifest,
        concurrency,
        attempts,
        places,
        folder: { ...(record && { record }), ...(lock && { lock }) },
        ...(redactor && { redactor }),
        ...(player && { player }),
        onFolder: (folder) => {
          if (setup.columns !== undefined) ofBatch = columns.begin(batch.id, folder);
        },
        onGroup: (groupIndex) => {
          if (!batch.delivered.has(groupIndex)) ofBatch?.started(groupIndex);
        },
        deliver: async (groupIndex, group) => {
          const delivered = await this.#deliver(batch, groupIndex, group);
          if (delivered === undefined) return;
          batch.delivered.add(groupIndex);
          ofBatch?.delivered(groupIndex, delivered);
          // The reader may have acknowledged the group already.
          if (ofBatch !== undefined) await columns.free();
        },
      });
      if (isWhole && !batch.hasEnded) {
        // The disk already holds all groups, so a later cancellation has no effect.
        batch.state = "finished";
        batch.callOff?.();
        await journal.append({ type: "batch-ended", batch: batch.id, state: "finished" });
        groups.wake();
      }
    } catch (error) {
      const problem = batchProblemIn(error);
      if (problem === undefined) throw error;
      await this.#meet(batch, problem);
    } finally {
      stopped.removeEventListener("abort", onStop);
      columns.rest(batch.id);
    }
    if (ofBatch !== undefined) await columns.free();
  }

  /** Records a batch's problem. Ends the batch if no later start can resume it. */
  async #meet(batch: Batch, problem: BatchProblem): Promise<void> {
    const { options, groups, journal, stopped } = this.#parts;
    const { redactor, takers, onTrouble = (text) => process.emitWarning(text) } = options;
    // The next start finds the problem again. A cancelled batch has ended already.
    if (stopped.aborted || batch.hasEnded) return;
    const reason = redactor?.text(problem.message) ?? problem.message;
    const { id, request } = batch;
    const taker = takerOf(batch, takers);
    // No later start helps if the deadline has passed, or if the caller does not wait for a later
    // start.
    if (!batch.isLate && taker?.waitsOn !== false) {
      batch.state = "queued";
      batch.reason = reason;
      onTrouble(`${id} waits: ${reason}`);
      return;
    }
    await journal.append({ type: "batch-ended", batch: id, state: "failed", reason });
    // The batch was cancelled in the meantime, and its end is already written.
    if (batch.hasEnded) return;
    batch.state = "failed";
    batch.reason = reason;
    batch.callOff?.();
    groups.wake();
    onTrouble(`${id} has failed: ${reason}`);
    taker?.onCancelled?.(request.key, reason, { signal: stopped });
  }

  /**
   * Delivers a group to the batch's taker or stores it for readers. Returns the entry of a stored group, and `taken`
   * for one that the taker has. Returns `undefined` if the delivery to the taker was interrupted. The next start then
   * delivers the group again.
   */
  async #deliver(
    batch: Batch,
    groupIndex: number,
    group: PlayedGroup,
  ): Promise<GroupEntry | "taken" | undefined> {
    const { id, request, handOver } = batch;
    const { options, groups, columns } = this.#parts;
    const { columns: specs } = options.setup;
    for (const attempt of group.attempts) {
      const outcome = attempt.type === "played" ? attempt.episode.outcome : "aborted";
      this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
    }
    if (batch.taker === undefined) {
      const described = describeGroup(group, { batch: id, key: request.key });
      return await groups.add({ batch: id, groupIndex }, described);
    }
    const taker = takerOf(batch, options.takers);
    assertInvariant(taker !== undefined, `${id} is played, and its taker is not there`);
    try {
      await taker.take(group, {
        key: request.key,
        signal: handOver.signal,
        ...(specs !== undefined && { columns: { specs, source: columns.sourceOf(id) } }),
      });
    } catch (error) {
      if (handOver.signal.aborted) return undefined;
      throw error;
    }
    return "taken";
  }
}

/** The folder of a batch's run, within the service's data folder. */
export function batchFolder(dir: string, batch: string): string {
  return path.join(dir, "batches", batch);
}
