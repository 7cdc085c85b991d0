import { planRun, type RunPlan } from "../run/schedule/plan-run.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { takeTurn } from "../async/take-turn.ts";
import type { BatchRequest } from "./batch-request.ts";
import { ServiceError } from "./service-error.ts";

/** A batch's status, for callers. */
export interface BatchStatus {
  readonly batch: string;
  readonly key: string;
  /** `failed`: it could not be played to its end. */
  readonly state: "queued" | "running" | "finished" | "cancelled" | "failed";
  readonly groups: number;
  readonly finishedGroups: number;
  /**
   * The reason why it failed, or why it waits for another start of the service. Absent otherwise.
   */
  readonly reason?: string;
}

/** Rollouts that were asked for. */
export class Batch {
  readonly id: string;
  /** Counts batches from 1, in the order in which they were accepted. */
  readonly number: number;
  readonly request: BatchRequest;
  /** The taker of its groups. `undefined` for the readers of `/v1/groups`. */
  readonly taker: string | undefined;
  /** When it was accepted: milliseconds since the epoch. */
  readonly atMs: number;
  /** Aborted when no more of the batch is to be played. */
  readonly stop = new AbortController();
  /** Aborted when its taker is to stop: the batch was cancelled, or the service stops. */
  readonly handOver = new AbortController();
  /** Places of the groups that are there to be read. */
  readonly delivered = new Set<number>();
  state: BatchStatus["state"] = "queued";
  /** See `BatchStatus`. */
  reason: string | undefined;
  /** True after its deadline. */
  isLate = false;
  /** Cancels the deadline. `undefined` if there is none. */
  callOff: (() => void) | undefined;
  /** Resolves when its attempts have stopped. `undefined` if none has started. */
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

  /** Attempts that are accepted and in no group that can be read. */
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

/** True if a batch has ended. */
export function hasEnded({ state }: Pick<BatchStatus, "state">): boolean {
  return state !== "queued" && state !== "running";
}

/**
 * Plans what a batch asks for.
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
 * Draws each task of a plan, with pauses for other work, so that a batch with an invalid task is
 * refused at once.
 * @throws ServiceError `bad-request` for a task that cannot be drawn, or that has the id of
 *   another.
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
