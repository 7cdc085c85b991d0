import { planRun, type RunPlan } from "../run/schedule/plan-run.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { takeTurn } from "../async/take-turn.ts";
import type { BatchRequest } from "./batch-request.ts";
import { ServiceError } from "./service-error.ts";

/** A batch's status, as callers see it. JSON-able. */
export interface BatchStatus {
  readonly batch: string;
  readonly key: string;
  /** `failed`: a problem of the batch ended it before its last group. */
  readonly state: "queued" | "running" | "finished" | "cancelled" | "failed";
  readonly groups: number;
  readonly finishedGroups: number;
  /**
   * The reason why it failed, or why it waits for another start of the service. Absent otherwise.
   */
  readonly reason?: string;
}

/** The rollouts of one request, with their progress. */
export class Batch {
  readonly id: string;
  /** The batch's number in the order of acceptance, from 1. */
  readonly number: number;
  readonly request: BatchRequest;
  /**
   * The name of the `Taker` (another trainer's adapter) that gets the groups. `undefined` if readers of `/v1/groups` get
   * them.
   */
  readonly taker: string | undefined;
  /** The time of acceptance, in milliseconds since the epoch. */
  readonly atMs: number;
  /** Aborts to stop the batch's attempts. */
  readonly stop = new AbortController();
  /** Aborts to stop a delivery to the taker, when the batch is cancelled or the service stops. */
  readonly handOver = new AbortController();
  /** Indexes of the delivered groups within the batch. */
  readonly delivered = new Set<number>();
  state: BatchStatus["state"] = "queued";
  /** See `BatchStatus`. */
  reason: string | undefined;
  /** True after the batch's deadline. */
  isLate = false;
  /** Cancels the deadline. `undefined` if there is none. */
  callOff: (() => void) | undefined;
  /** Resolves when the batch's attempts have stopped. `undefined` if none has started. */
  playing: Promise<void> | undefined;

  constructor(about: Pick<Batch, "number" | "request" | "atMs" | "taker">) {
    this.id = `b${about.number}`;
    this.number = about.number;
    this.request = about.request;
    this.taker = about.taker;
    this.atMs = about.atMs;
  }

  get hasEnded(): boolean {
    return hasEnded(this);
  }

  /** The number of accepted attempts in groups that were not delivered yet. */
  get openAttempts(): number {
    if (this.hasEnded) return 0;
    return (this.request.tasks.length - this.delivered.size) * this.request.samples;
  }

  get status(): BatchStatus {
    return {
      batch: this.id,
      key: this.request.key,
      state: this.state,
      groups: this.request.tasks.length,
      finishedGroups: this.delivered.size,
      ...(this.reason !== undefined && { reason: this.reason }),
    };
  }
}

/** True if a batch is finished, cancelled or failed. */
export function hasEnded({ state }: Pick<BatchStatus, "state">): boolean {
  return state !== "queued" && state !== "running";
}

/**
 * Plans the attempts of a request.
 *
 * @throws ServiceError `bad-request` for tasks that the environment does not have.
 */
export function planBatch(environment: Environment, request: BatchRequest): RunPlan {
  const { split, tasks, samples, seed } = request;
  if (!Object.hasOwn(environment.splits, split)) {
    const known = Object.keys(environment.splits).join(", ");
    throw new ServiceError("bad-request", `"split" is wrong: expected one of ${known}`);
  }
  try {
    return planRun(environment, { split, taskIndexes: tasks, sampleCount: samples, seed });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new ServiceError("bad-request", `"tasks" is wrong: ${error.message}`, { cause: error });
  }
}

/**
 * Makes each task of a plan once, so that a batch with an invalid task is refused immediately. Pauses between tasks for
 * other work.
 * @throws ServiceError `bad-request` for a task that cannot be made, or that has the id of another task.
 */
export async function drawTasks(plan: RunPlan): Promise<void> {
  const { scope } = plan;
  const ids = new Set<string>();
  for (const [place, index] of scope.taskIndexes.entries()) {
    await takeTurn();
    try {
      ids.add(plan.at(place * scope.sampleCount).task.id);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      throw new ServiceError("bad-request", `"tasks" is wrong: ${error.message}`, { cause: error });
    }
    if (ids.size > place) continue;
    throw new ServiceError("bad-request", `"tasks" is wrong: ${index} has the id of another task`);
  }
}
