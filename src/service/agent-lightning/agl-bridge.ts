import { createHash } from "node:crypto";
import { describeError, UsageError } from "../../errors.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import type { BatchRequest } from "../batch-request.ts";
import type { GroupColumns, PlayedAttempt, Taker } from "../batch-taker.ts";
import { readyAttempt } from "../ready-attempt.ts";
import type { RolloutService } from "../rollout-service.ts";
import { ServiceError } from "../service-error.ts";
import { aglEvents, aglRules } from "./agl-events.ts";
import { AglError, isGone, type AglRollout, type AglStore } from "./agl-store.ts";

/** The name of this contract's batches in the service's journal. */
export const aglTaker = "agent-lightning";

/** The number of queued rollouts in one request to the store. */
const pageSize = 256;

/** The pause between two searches for queued rollouts, in milliseconds. */
const lookEveryMs = 1_000;

/** The longest pause between two tries of a call, in milliseconds. */
const longestPauseMs = 30_000;

/** The store's reply to a claim. `unknown` if no reply came: the store may have accepted the claim. */
type Claim = "ours" | "not-ours" | "unknown";

/** The parts that a bridge works with. */
interface AglBridgeOptions {
  readonly store: AglStore;
  /** The policy's name in the events. */
  readonly model: string;
  /** Called with a message for a person if a call to the store fails. */
  readonly note: (text: string) => void;
  readonly clock?: Clock;
}

/**
 * Plays rollouts of agent-lightning's store and sends their events to it, in place of the runners
 * that agent-lightning's controller starts. A rollout's id is the batch's key, so that a later
 * start of the service resumes it.
 */
export class AglBridge {
  readonly #options: AglBridgeOptions;
  readonly #clock: Clock;
  /** The claims under way, by rollout id. Each resolves with the store's reply. */
  readonly #claims = new Map<string, Promise<Claim>>();
  #isDown = false;

  constructor(options: AglBridgeOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Sends the results of this contract's batches to the store. */
  get taker(): Taker {
    return {
      waitsOn: true,
      take: async ({ attempts }, { key, signal, columns }) => {
        if ((await this.#claims.get(key)) === "not-ours") return;
        const about = { signal, columns };
        await this.#insist(signal, async () => await this.#give(key, attempts[0]!, about));
      },
      onCancelled: (key, reason = "it was cancelled", { signal }) =>
        void this.#giveUp(key, reason, signal),
    };
  }

  /**
   * Plays queued rollouts until the service stops. Waits while the store is unreachable, and never
   * rejects because of it.
   */
  async work(service: RolloutService): Promise<void> {
    const { stopping } = service;
    while (!stopping.aborted) {
      await this.#insist(stopping, async () => await this.look(service)).catch((error: unknown) => {
        if (!stopping.aborted) throw error;
      });
      await this.#pause(lookEveryMs, stopping);
    }
  }

  /** Submits the queued rollouts as batches until the service's queue is full. */
  async look(service: RolloutService): Promise<void> {
    const { store } = this.#options;
    const { stopping } = service;
    const refused: { readonly id: string; readonly problem: string }[] = [];
    for (const rollout of await store.queued(pageSize, stopping)) {
      const id = rollout.rollout_id;
      if (this.#claims.has(id)) continue;
      try {
        await this.#begin(service, rollout);
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code === "stopping") throw error;
        // The rest stays in the store.
        if (error.code === "queue-full") break;
        refused.push({ id, problem: error.message });
      }
    }
    // Refusals come last: the store may not accept one, and that must not delay other rollouts. The
    // next search finds it again.
    for (const { id, problem } of refused) await this.#refuse(id, problem, stopping);
  }

  async #begin(service: RolloutService, rollout: AglRollout): Promise<void> {
    const { store } = this.#options;
    const id = rollout.rollout_id;
    const claimed = withResolvers<Claim>();
    this.#claims.set(id, claimed.promise);
    try {
      const { status } = await service.submit(toBatch(rollout), aglTaker);
      const isOurs = await store.claim(id, service.stopping);
      // Resolved first: a cancellation waits for running attempts, and those wait for this.
      claimed.resolve(isOurs ? "ours" : "not-ours");
      if (!isOurs) await service.cancel(status.batch);
    } finally {
      // If no reply came, the delivery of the result asks the store again.
      claimed.resolve("unknown");
      this.#claims.delete(id);
    }
  }

  /** Reports a rollout that cannot be played as failed. */
  async #refuse(id: string, problem: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.store.move(id, { state: "failed", problem }, signal);
    } catch (error) {
      // Another process has ended the rollout.
      if (!isGone(error)) throw error;
    }
  }

  async #give(
    id: string,
    played: PlayedAttempt,
    {
      signal,
      columns,
    }: { readonly signal: AbortSignal; readonly columns: GroupColumns | undefined },
  ): Promise<void> {
    const { store, model, note } = this.#options;
    try {
      // An earlier start may have stopped between the batch's start and the claim.
      if (!(await store.isOurs(id, signal)) && !(await store.claim(id, signal))) return;
      const ready = readyAttempt(played, { rules: aglRules });
      if (ready.type === "unfit") {
        await store.move(id, { state: "failed", problem: ready.why }, signal);
        return;
      }
      for await (const event of aglEvents(ready.attempt, { model, columns })) {
        await store.addEvent(id, event, signal);
      }
      await store.move(id, { state: "succeeded" }, signal);
    } catch (error) {
      if (error instanceof UsageError) {
        // The bytes of its columns cannot be read.
        await this.#refuse(id, error.message, signal);
        return;
      }
      if (!isGone(error)) throw error;
      // The trainer has cancelled the rollout, or another process has ended it.
      note(`agent-lightning does not take ${id} any more: ${error.message}`);
    }
  }

  /** Reports a cancelled or failed rollout to the store, if this service has claimed it. */
  async #giveUp(id: string, problem: string, stopped: AbortSignal): Promise<void> {
    const { store, note } = this.#options;
    try {
      // Before the claim, the store would report that the rollout has no owner.
      if ((await this.#claims.get(id)) === "not-ours") return;
      await this.#insist(stopped, async () => {
        try {
          // A stop does not cut this call short, because the next start would not repeat it.
          const signal = AbortSignal.timeout(longestPauseMs);
          if (await store.isOurs(id, signal)) await this.#refuse(id, problem, signal);
        } catch (error) {
          // The trainer has cancelled the rollout.
          if (!isGone(error)) throw error;
        }
      });
    } catch (error) {
      note(
        `agent-lightning was not notified that ${id} has ended (${problem}): ${describeError(error)}`,
      );
    }
  }

  /**
   * Repeats a call until the store accepts it. Reports the start and the end of an outage once
   * each.
   */
  async #insist(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    for (let pauseMs = 500; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        await work();
        if (this.#isDown) this.#options.note("agent-lightning answers again");
        this.#isDown = false;
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (!isUnanswered(error)) throw error;
        if (!this.#isDown)
          this.#options.note(
            `agent-lightning does not answer and is called again: ${describeError(error)}`,
          );
        this.#isDown = true;
      }
      await this.#pause(pauseMs, signal);
      signal.throwIfAborted();
    }
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        callOff();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const callOff = this.#clock.after(ms, end);
      signal.addEventListener("abort", end, { once: true });
    });
  }
}

/** True if the store failed to perform a call, or if a call timed out. */
function isUnanswered(error: unknown): boolean {
  if (error instanceof AglError) return true;
  return error instanceof DOMException && error.name === "TimeoutError";
}

/**
 * Converts a rollout of agent-lightning to a batch with one attempt.
 *
 * @throws ServiceError `bad-request` for an input that names no task.
 */
function toBatch({ rollout_id: key, input, config, is_train: isTrain }: AglRollout): BatchRequest {
  const { task_index: index, split } = (
    typeof input === "object" && input !== null ? input : {}
  ) as { readonly task_index?: unknown; readonly split?: unknown };
  const taskIndex = typeof index === "string" && /^\d+$/.test(index) ? Number(index) : index;
  if (!Number.isSafeInteger(taskIndex) || (taskIndex as number) < 0) {
    throw new ServiceError("bad-request", 'The input names no task: expected a "task_index"');
  }
  if (split !== undefined && typeof split !== "string") {
    throw new ServiceError("bad-request", `The input's "split" is wrong: expected a text`);
  }
  const { timeout_seconds: deadlineS } = config;
  // Retries of a rollout use the same seed.
  const seed = createHash("sha256").update(key).digest().readUInt32BE(0) >>> 1;
  return {
    key,
    split: split ?? (isTrain ? "train" : "test"),
    tasks: [taskIndex as number],
    samples: 1,
    seed,
    sampling: {},
    ...(typeof deadlineS === "number" && deadlineS > 0 && { deadlineS }),
  };
}
