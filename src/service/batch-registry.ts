import { isDeepStrictEqual } from "node:util";
import type { BatchRequest } from "./batch-request.ts";
import { Batch, type BatchStatus } from "./batch.ts";
import { ServiceError } from "./service-error.ts";

/** The accepted batches by id and by key. */
export class BatchRegistry {
  readonly #batches = new Map<string, Batch>();
  readonly #byKey = new Map<string, { readonly batch: Batch; readonly accepted: Promise<void> }>();
  readonly #open = new Set<Batch>();
  #acceptedCount = 0;

  /** The batches that the registry still has, oldest first. */
  get all(): readonly Batch[] {
    return [...this.#batches.values()];
  }

  /** The unfinished batches. */
  get open(): ReadonlySet<Batch> {
    return this.#open;
  }

  /** Adds a batch with the next number. */
  add(about: Pick<Batch, "request" | "atMs" | "taker">): Batch {
    this.#acceptedCount += 1;
    const batch = new Batch({ number: this.#acceptedCount, ...about });
    this.#batches.set(batch.id, batch);
    this.#open.add(batch);
    return batch;
  }

  /** Reserves the batch's key. Requests with this key wait until the batch is accepted. */
  claimKey(batch: Batch, accepted: Promise<void>): void {
    this.#byKey.set(keyOf(batch), { batch, accepted });
  }

  /** Returns the batch with an id; `undefined` if there is none. */
  get(id: string): Batch | undefined {
    return this.#batches.get(id);
  }

  /**
   * Returns the batch with an id.
   *
   * @throws ServiceError `not-found`.
   */
  find(id: string): Batch {
    const batch = this.#batches.get(id);
    if (batch === undefined) throw new ServiceError("not-found", "There is no such batch");
    return batch;
  }

  /**
   * Returns the batch that already has the key.
   * @throws ServiceError `key-reused` if that batch has a different request.
   */
  async known(
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

  /**
   * Requires room for the attempts of a batch.
   *
   * @throws ServiceError `too-large` if the batch alone has more than `maxQueued` attempts, `queue-full` if it has with the other unfinished attempts.
   */
  requireRoom({ tasks, samples }: BatchRequest, maxQueued: number): void {
    const wanted = tasks.length * samples;
    if (wanted > maxQueued) {
      throw new ServiceError(
        "too-large",
        `The batch has ${wanted} attempts, and at most ${maxQueued} may be accepted and unfinished: ` +
          "submit several, or start the service with a higher --max-queued",
      );
    }
    const open = attemptsOf(this.#open);
    if (open + wanted <= maxQueued) return;
    throw new ServiceError(
      "queue-full",
      `${open} attempts are accepted and unfinished, at most ${maxQueued} may be: submit again later`,
    );
  }

  /**
   * Removes an ended batch from the unfinished ones. A taker never submits the same key again, so
   * its batch is removed completely. Other batches stay, because a caller may repeat its request.
   */
  forgetEnded(batch: Batch): void {
    if (!batch.hasEnded) return;
    this.#open.delete(batch);
    if (batch.taker === undefined) return;
    this.#batches.delete(batch.id);
    this.#byKey.delete(keyOf(batch));
  }
}

/** Counts the accepted attempts in groups that were not delivered yet. */
export function attemptsOf(batches: Iterable<Batch>): number {
  let sum = 0;
  for (const { openAttempts } of batches) sum += openAttempts;
  return sum;
}

/** Returns the key of a batch in the registry. Two takers may use the same key for different batches. */
function keyOf({ request, taker }: Pick<Batch, "request" | "taker">): string {
  return JSON.stringify([taker ?? "", request.key]);
}
