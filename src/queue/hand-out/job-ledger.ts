import type { Queue } from "bullmq";
import type { ColumnParts } from "../../columns/column-part.ts";
import type { Episode } from "../../episode/episode.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { answerSchema, type Answer } from "../job/attempt-result.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { SharedPlace } from "../place/shared-place.ts";
import { cancelledKey } from "../store/keys.ts";
import type { QueueStore } from "../store/queue-store.ts";
import type { HandOutNews } from "./hand-out-news.ts";
import type { HandedJob } from "./handed-job.ts";
import { GroupPriorities, nearlyDonePriority } from "./group-priority.ts";
import { judgeAnswer } from "./judge-answer.ts";
import type { TakenColumns } from "./taken-columns.ts";

/** The number of jobs in one call to the queue. */
const addedTogether = 500;

/** The fields to read of a job. BullMQ's `stc` is the number of times its lock expired. */
const lookedAt = ["name", "finishedOn", "returnvalue", "failedReason", "stc"] as const;

/** Maximum number of jobs that one check reads. */
const lookedAfterTogether = 1_000;

/**
 * The time after which a missing job counts as lost, in milliseconds. A job that was just added may
 * not be visible yet.
 */
const graceMs = 1_000;

/** The number of unusable answers to one job after which the run ends. */
const mostRefused = 5;

/**
 * The number of lost workers after which an attempt fails. A machine can be lost for other reasons,
 * but an attempt that exhausts a worker's memory loses every worker that plays it.
 */
const mostLost = 10;

/** The lifetime of the list of cancelled jobs in the store, in seconds. */
const cancelledS = 3_600;

/** The longest time for which closing waits for an unreachable store, in milliseconds. */
const closeMs = 5_000;

/** An accepted answer. */
interface LandingAnswer {
  /** The answer's file in the shared place. Undefined if the answer is in the message. */
  readonly file: string | undefined;
  /** The parts of side columns that the answer names. Undefined if it names none. */
  readonly columns: ColumnParts | undefined;
}

/**
 * Tracks the jobs that are handed out. Ends each job once, even if the queue reports its end
 * several times. Adds a job again if the queue has lost it.
 */
export class JobLedger {
  readonly #store: QueueStore;
  readonly #run: string;
  readonly #queue: Queue;
  readonly #place: SharedPlace | undefined;
  readonly #columns: TakenColumns;
  readonly #onNews: (news: HandOutNews) => void;
  readonly #handed = new Map<string, HandedJob>();
  readonly #groups = new GroupPriorities();
  /** Accepted answers whose episodes are not on the disk yet. */
  readonly #landing = new Map<string, LandingAnswer>();
  #toAdd: HandedJob[] = [];
  #isAdding = false;
  #toCallOff: string[] = [];
  #lookedAfter: readonly string[] = [];
  /** Writes to the store that must finish before closing. */
  readonly #pending = new Set<Promise<unknown>>();
  /** The jobs that each signal interrupts. */
  readonly #interruptible = new WeakMap<AbortSignal, Set<HandedJob>>();
  #failure: { readonly error: unknown } | undefined;
  landedCount = 0;

  constructor(options: {
    readonly store: QueueStore;
    readonly run: string;
    readonly queue: Queue;
    readonly place?: SharedPlace;
    readonly columns: TakenColumns;
    readonly onNews: (news: HandOutNews) => void;
  }) {
    this.#store = options.store;
    this.#run = options.run;
    this.#queue = options.queue;
    this.#place = options.place;
    this.#columns = options.columns;
    this.#onNews = options.onNews;
  }

  /** The number of jobs without an accepted answer. */
  get count(): number {
    return this.#handed.size;
  }

  get isEverythingLanded(): boolean {
    return this.#landing.size === 0;
  }

  /** Adds a job to the queue and resolves with its episode. See `playEpisode()` for the signals. */
  async play(
    handed: HandedJob,
    {
      signal,
      interrupt,
    }: { readonly signal: AbortSignal; readonly interrupt: AbortSignal | undefined },
  ): Promise<Episode> {
    if (this.#failure !== undefined) throw this.#failure.error;
    this.#handed.set(handed.id, handed);
    this.#add(handed);
    const onAbort = (): void => this.#cancel(handed, signal.reason);
    const leave = interrupt && this.#listenTo(interrupt, handed);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await handed.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      leave?.();
    }
  }

  /**
   * Registers a job for interruption. All jobs of a run share one signal listener, because adding a
   * listener searches all earlier ones. Returns a function that removes the job.
   */
  #listenTo(interrupt: AbortSignal, handed: HandedJob): () => void {
    let jobs = this.#interruptible.get(interrupt);
    if (jobs === undefined) {
      const listening = new Set<HandedJob>();
      const onAbort = (): void => {
        for (const job of listening) this.#later(this.#interrupt(job));
      };
      interrupt.addEventListener("abort", onAbort, { once: true });
      jobs = listening;
      this.#interruptible.set(interrupt, jobs);
    }
    jobs.add(handed);
    return () => void jobs.delete(handed);
  }

  /** Records that a worker has started a job. */
  noteBegun(id: string): void {
    const handed = this.#handed.get(id);
    if (handed !== undefined) this.#groups.begun(handed.group, id);
  }

  /** Reads an answer and ends its job. Ignores answers to jobs that are not in the ledger. */
  take(id: string, answer: unknown): void {
    const handed = this.#handed.get(id);
    if (handed === undefined || handed.isReading) return;
    handed.isReading = true;
    const taken = this.#takeAnswer(handed, answer).catch((error: unknown) => {
      this.#end(handed);
      handed.reject(error);
    });
    this.#later(taken.finally(() => (handed.isReading = false)));
  }

  async #takeAnswer(handed: HandedJob, value: unknown): Promise<void> {
    const read = answerSchema.safeParse(value);
    const verdict = read.success
      ? await judgeAnswer(handed, read.data, {
          place: this.#place,
          columns: this.#columns,
          clock: this.#store.clock,
        })
      : ({ type: "again", reason: "the answer is of another form than expected" } as const);
    // The job may have been cancelled during the await.
    if (this.#handed.get(handed.id) !== handed) return;
    if (verdict.type === "again") {
      await this.#handOutAgain(handed, verdict.reason, read.data);
      return;
    }
    if (verdict.type === "thrown") {
      this.#end(handed);
      this.#later(this.#queue.remove(handed.id));
      throw verdict.error;
    }
    const { result, file, columns } = verdict;
    const { id, job } = handed;
    if (result.deliveries > 1) {
      const { deliveries, from, recordedTurns, dropped } = result;
      const { rolloutId, attempt } = job;
      this.#onNews({
        type: "attempt-played-again",
        rolloutId,
        attempt,
        worker: verdict.worker,
        deliveries,
        from,
        recordedTurns,
        ...(dropped !== undefined && { dropped }),
      });
    }
    this.#end(handed);
    this.#landing.set(id, { file, columns });
    // An interrupted attempt has no result to store. The next start hands it out again.
    if (result.episode.outcome === "aborted") this.landed(id);
    handed.resolve(result.episode);
  }

  async #handOutAgain(
    handed: HandedJob,
    reason: string | undefined,
    answer: Answer | undefined,
  ): Promise<void> {
    try {
      await this.#queue.remove(handed.id);
      await this.#store.redis.srem(cancelledKey(this.#run), handed.id, `interrupt:${handed.id}`);
    } catch {
      // The store refuses writes now. The next check finds the answer again, or finds no job.
      return;
    }
    if (handed.isInterrupted) {
      this.#end(handed);
      handed.resolve(handed.unplayed());
      return;
    }
    if (reason !== undefined) {
      const { rolloutId, attempt } = handed.job;
      const worker = answer?.worker ?? "unknown";
      handed.refusedCount += 1;
      this.#onNews({ type: "result-refused", rolloutId, attempt, worker, reason });
      if (handed.refusedCount >= mostRefused) {
        throw new UsageError(
          `Cannot take what workers send of ${rolloutId}, ${mostRefused} times: last, from ${worker}, ${reason}`,
        );
      }
    }
    // The queue has lost a job that was cancelled by mistake. The next check adds it again.
    if (reason === undefined) handed.addedAtMs = this.#store.clock.now();
    else this.#add(handed);
  }

  /** Records that an attempt's result is on the disk, and removes the job and its file. */
  landed(id: string): void {
    const landing = this.#landing.get(id);
    if (landing === undefined) return;
    const { file, columns } = landing;
    this.#landing.delete(id);
    this.landedCount += 1;
    this.#later(this.#queue.remove(id));
    if (file !== undefined) this.#later(this.#place?.remove(file));
    if (columns !== undefined) this.#later(this.#columns.landed(columns));
  }

  /**
   * Checks jobs in the store: takes answers whose notification was lost, and adds lost jobs again.
   */
  async lookAfter(): Promise<void> {
    const ids = this.#nextToLookAfter();
    if (ids.length === 0) return;
    const pipeline = this.#store.redis.pipeline();
    for (const id of ids) {
      pipeline.hmget(this.#queue.toKey(id), ...lookedAt);
    }
    const rows = (await pipeline.exec()) ?? [];
    for (const [index, [error, row]] of rows.entries()) {
      const handed = this.#handed.get(ids[index]!);
      if (handed === undefined || handed.isReading || error !== null) continue;
      const [name, finishedOn, returned, failed, lost] = row as (string | null)[];
      if (name === null || name === undefined) this.#add(handed);
      else if (failed !== null && finishedOn !== null)
        await this.#handOutAgain(handed, undefined, undefined);
      else if (finishedOn !== null) this.take(handed.id, parseJsonText(returned ?? "null"));
      else if (Number(lost) >= mostLost) this.#giveUp(handed, Number(lost));
      else if (handed.isInterrupted) await this.#interrupt(handed);
    }
  }

  #giveUp(handed: HandedJob, lost: number): void {
    const { rolloutId } = handed.job;
    const failure = new RolloutError(
      "internal/worker-lost",
      `${lost} workers were lost while they played ${rolloutId}: it may need more memory than they have`,
    );
    handed.onTrouble?.(failure);
    this.#callOffLater(handed);
    handed.resolve(handed.failed(failure));
  }

  #nextToLookAfter(): readonly string[] {
    if (this.#lookedAfter.length === 0) this.#lookedAfter = [...this.#handed.keys()];
    const next = this.#lookedAfter.slice(0, lookedAfterTogether);
    this.#lookedAfter = this.#lookedAfter.slice(lookedAfterTogether);
    const now = this.#store.clock.now();
    return next.filter((id) => {
      const addedAtMs = this.#handed.get(id)?.addedAtMs;
      return addedAtMs !== undefined && now - addedAtMs > graceMs;
    });
  }

  /** Fails every job, because the run cannot continue. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    for (const handed of Array.from(this.#handed.values())) {
      this.#end(handed);
      handed.reject(error);
    }
  }

  /** Cancels all jobs, and waits for pending writes to the store. */
  async close(): Promise<void> {
    const error = new DOMException("the run is closed", "AbortError");
    for (const handed of Array.from(this.#handed.values())) this.#cancel(handed, error);
    const late = withResolvers();
    const callOff = this.#store.clock.after(closeMs, () => late.resolve());
    try {
      while (this.#pending.size > 0) {
        const done = Promise.allSettled(this.#pending).then(() => "done");
        if ((await Promise.race([done, late.promise])) !== "done") return;
      }
    } finally {
      callOff();
    }
  }

  #add(handed: HandedJob): void {
    handed.addedAtMs = undefined;
    this.#toAdd.push(handed);
    if (this.#isAdding) return;
    this.#isAdding = true;
    this.#later(this.#addAll());
  }

  /** Adds the jobs that were handed out within one round of the event loop, in large calls. */
  async #addAll(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    try {
      while (this.#toAdd.length > 0) {
        const some = this.#toAdd
          .splice(0, addedTogether)
          .filter((handed) => this.#handed.get(handed.id) === handed);
        await this.#addSome(some);
        const now = this.#store.clock.now();
        for (const handed of some) handed.addedAtMs = now;
      }
    } finally {
      this.#isAdding = false;
    }
  }

  async #addSome(some: readonly HandedJob[]): Promise<void> {
    if (some.length === 0) return;
    const { redis } = this.#store;
    const ids = some.map(({ id }) => id);
    try {
      // An earlier start may have cancelled these jobs.
      await redis.srem(cancelledKey(this.#run), ...ids, ...ids.map((id) => `interrupt:${id}`));
      await this.#queue.addBulk(
        some.map(({ id, job, group, groupLeft }) => ({
          name: "attempt",
          data: job,
          opts: {
            jobId: id,
            priority: this.#groups.add(group, { id, left: groupLeft }),
            removeOnComplete: false,
            removeOnFail: false,
            stackTraceLimit: 0,
          },
        })),
      );
      await this.#store.publish({ type: "jobs", run: this.#run });
    } catch {
      // The next check adds missing jobs again.
    }
  }

  #end(handed: HandedJob): void {
    if (this.#handed.get(handed.id) !== handed) return;
    this.#handed.delete(handed.id);
    for (const id of this.#groups.ended(handed.group, handed.id)) {
      this.#later(this.#hurry(id));
    }
  }

  async #hurry(id: string): Promise<void> {
    const job = await this.#queue.getJob(id);
    await job?.changePriority({ priority: nearlyDonePriority });
  }

  #cancel(handed: HandedJob, reason: unknown): void {
    if (this.#handed.get(handed.id) !== handed) return;
    this.#callOffLater(handed);
    handed.reject(reason);
  }

  #callOffLater(handed: HandedJob): void {
    this.#end(handed);
    if (this.#toCallOff.push(handed.id) === 1) this.#later(this.#callOff());
  }

  /** Notifies workers of cancelled jobs, and removes those that no worker has taken. */
  async #callOff(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    const key = cancelledKey(this.#run);
    const ids = this.#toCallOff.splice(0);
    for (let start = 0; start < ids.length; start += addedTogether) {
      const jobs = ids.slice(start, start + addedTogether);
      await this.#store.redis
        .multi()
        .sadd(key, ...jobs)
        .expire(key, cancelledS)
        .exec();
      await this.#store.publish({ type: "cancel", run: this.#run, jobs });
      await Promise.all(jobs.map(async (id) => await this.#isRemoved(id)));
    }
  }

  async #interrupt(handed: HandedJob): Promise<void> {
    handed.isInterrupted = true;
    const { id } = handed;
    if (await this.#isRemoved(id)) {
      if (this.#handed.get(id) !== handed || handed.isReading) return;
      this.#end(handed);
      handed.resolve(handed.unplayed());
      return;
    }
    const key = cancelledKey(this.#run);
    await this.#store.redis.multi().sadd(key, `interrupt:${id}`).expire(key, cancelledS).exec();
    await this.#store.publish({ type: "interrupt", run: this.#run, jobs: [id] });
  }

  /** Removes a job from the queue. Returns false if a worker has already taken the job. */
  async #isRemoved(id: string): Promise<boolean> {
    const finishedOn = await this.#store.redis.hget(this.#queue.toKey(id), "finishedOn");
    if (finishedOn !== null) return false;
    return (await this.#queue.remove(id)) === 1;
  }

  #later(work: Promise<unknown> | undefined): void {
    if (work === undefined) return;
    const settled = work.catch(() => {
      // The store or the shared place is unreachable. What remains is removed with the run.
    });
    this.#pending.add(settled);
    void settled.finally(() => this.#pending.delete(settled));
  }
}
