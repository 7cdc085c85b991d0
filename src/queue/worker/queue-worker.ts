import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { describeError, UsageError } from "../../errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { SharedPlace } from "../place/shared-place.ts";
import { forgetRun, isForgotten, readRuns, type RunEntry } from "../run/run-entry.ts";
import { describeDifference, type RunTerms } from "../run/run-terms.ts";
import { forgetWorker, writeWorker } from "../run/worker-entry.ts";
import { queueName } from "../store/keys.ts";
import type { News } from "../store/news.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { beginWith } from "../store/begin-with.ts";
import { within } from "../store/within.ts";
import { farewellMs, RunLane } from "./run-lane.ts";
import { watchEngineLease } from "./watch-engine-lease.ts";
import { WorkerTally } from "./worker-tally.ts";

/** The parts with which a worker plays, and its capacity. */
export interface QueueWorkerOptions {
  readonly store: QueueStore;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  /** The facts that a run must share with this worker. */
  readonly terms: RunTerms;
  readonly place?: SharedPlace;
  /**
   * Returns the folder in which this worker writes a run's side columns: the run's own, or one in the shared place.
   * Required if the setup has columns.
   */
  readonly columnsOf?: (run: string) => string;
  readonly redactor: Redactor;
  /** Maximum number of concurrent attempts, over all runs. At least 1. */
  readonly concurrency: number;
  /** The worker's name. Default: the machine's name with a random part. */
  readonly name?: string;
  /**
   * The time without a heartbeat after which other workers take its attempts, in milliseconds.
   * Default 15 000.
   */
  readonly leaseMs?: number;
  /**
   * The interval between searches for attempts of lost workers, in milliseconds. Default half a
   * lease.
   */
  readonly lookForLostMs?: number;
  /** Called with messages for a person. */
  readonly onNote?: (note: WorkerNote) => void;
}

/**
 * A message of a worker for a person: it joins, leaves or refuses a run, loses or regains contact with the store, or
 * has a problem with an attempt. JSON-able.
 */
export interface WorkerNote {
  readonly about: "joins" | "leaves" | "refuses" | "contact" | "trouble";
  readonly text: string;
}

/** The longest wait before the next search for jobs, in milliseconds. A notification starts the search earlier. */
const lookAgainMs = 1_000;

/** The number of heartbeats within a lease. */
const beatsPerLease = 3;

/** The share of the lease after which a worker without contact starts no turn. */
const cutOffShare = 0.7;

/**
 * Plays attempts of every run with the same facts (`RunTerms`) as the worker, a limited number at the same time.
 * Divides its capacity equally between runs.
 */
export class QueueWorker implements AsyncDisposable {
  readonly name: string;
  /** Rejects if the worker cannot continue. Never resolves. */
  readonly failed: Promise<never>;
  readonly #options: QueueWorkerOptions;
  readonly #leaseMs: number;
  readonly #setup: EpisodeSetup;
  readonly #tally = new WorkerTally();
  readonly #lanes = new Map<string, RunLane>();
  /** Lanes that could not remove their registration because the store refused writes, by run. */
  readonly #left = new Map<string, RunLane>();
  /** The reasons why runs are refused, by run. */
  readonly #refused = new Map<string, string>();
  readonly #plays = new Set<Promise<void>>();
  readonly #startedAtMs: number;
  readonly #fail: (error: unknown) => void;
  #loop: Promise<void> = Promise.resolve();
  #joining: Promise<void> = Promise.resolve();
  #wake = withResolvers();
  #isDraining = false;
  #hasLeft = false;
  #lastContactMs: number;
  #isCutOff = false;
  /** True if the store has this worker's heartbeat, as far as the worker knows. */
  #isKnown = false;
  /** The number of times the store has lost this worker's entry. */
  #forgottenCount = 0;
  /** Cancel the next heartbeat, and the next check of the time since the last one. */
  #callOffBeat = (): void => {};
  #callOffWatch = (): void => {};
  #stopListening = (): void => {};

  private constructor(options: QueueWorkerOptions) {
    const { name, leaseMs = 15_000, setup } = options;
    this.#options = options;
    this.#leaseMs = leaseMs;
    this.#startedAtMs = options.store.wallNow();
    this.#lastContactMs = options.store.clock.now();
    this.name = name ?? `${hostname()}-${randomUUID().slice(0, 6)}`;
    this.#setup = {
      ...setup,
      engine: watchEngineLease(setup.engine, () => this.#checkContact()),
      onTurn: (turn) => this.#tally.turnEnded(turn),
    };
    const { promise, reject } = withResolvers<never>();
    this.failed = promise;
    this.#fail = reject;
    promise.catch(() => {});
  }

  /**
   * Starts a worker, which plays all runs that it can until it is drained.
   * @throws UsageError if the store refuses writes.
   */
  static async start(options: QueueWorkerOptions): Promise<QueueWorker> {
    const worker = new QueueWorker(options);
    await beginWith("work for", () => worker.#giveSign());
    worker.#stopListening = options.store.listen((news) => worker.#hear(news));
    try {
      await beginWith("work for", () => worker.#join());
    } catch (error) {
      await worker[Symbol.asyncDispose]();
      throw error;
    }
    worker.#beatOn();
    worker.#watchOn();
    worker.#loop = worker.#work().catch((error: unknown) => worker.#fail(error));
    return worker;
  }

  /** The number of attempts that are being played. */
  get playingCount(): number {
    return this.#plays.size;
  }

  /**
   * Stops taking attempts and waits for the running ones. Returns unfinished attempts to the queue
   * after `withinMs`, so that other workers resume them.
   */
  async drain({ withinMs }: { readonly withinMs: number }): Promise<void> {
    this.#isDraining = true;
    this.#wake.resolve();
    // Does not wait for a store that does not answer: jobs that cannot be returned go back to the
    // queue after the lease.
    const { clock } = this.#options.store;
    await within(farewellMs, this.#loop, clock);
    await within(
      farewellMs,
      this.#giveSign().catch(() => {}),
      clock,
    );
    await within(withinMs, Promise.allSettled(this.#plays), clock);
    for (const lane of this.#lanes.values()) lane.giveBack();
    await within(farewellMs, Promise.allSettled(this.#plays), clock);
  }

  /** Returns unfinished attempts to the queue and leaves all runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain({ withinMs: 0 });
    this.#hasLeft = true;
    this.#callOffBeat();
    this.#callOffWatch();
    this.#stopListening();
    await within(farewellMs, this.#leave(), this.#options.store.clock);
  }

  async #leave(): Promise<void> {
    await this.#joining;
    for (const lane of this.#lanes.values()) await lane[Symbol.asyncDispose]();
    const { store } = this.#options;
    if (store.redis.status === "ready") await forgetWorker(store, this.name).catch(() => {});
  }

  /** Takes jobs while there is free capacity. */
  async #work(): Promise<void> {
    while (!this.#isDraining) {
      if (this.#plays.size < this.#options.concurrency && (await this.#takeOne())) continue;
      const callOff = this.#options.store.clock.after(lookAgainMs, () => {
        for (const lane of this.#lanes.values()) lane.isEmpty = false;
        this.#wake.resolve();
      });
      await this.#wake.promise;
      this.#wake = withResolvers();
      callOff();
    }
  }

  /**
   * Takes a job of the run with the fewest running attempts here. Returns false if there is no job.
   */
  async #takeOne(): Promise<boolean> {
    const lanes = [...this.#lanes.values()].filter(
      ({ hasJoined, isEmpty, isLeft }) => hasJoined && !isEmpty && !isLeft,
    );
    lanes.sort((one, other) => one.playingCount - other.playingCount);
    for (const lane of lanes) {
      // The worker may have left the run while another lane was asked.
      if (lane.isLeft || this.#lanes.get(lane.entry.run) !== lane) continue;
      const play = await lane.take();
      if (play === undefined) continue;
      this.#begin(lane, play);
      return true;
    }
    return false;
  }

  #begin(lane: RunLane, play: () => Promise<void>): void {
    // Moves the run to the end, so that the next job comes from another run.
    this.#lanes.delete(lane.entry.run);
    this.#lanes.set(lane.entry.run, lane);
    const playing = play()
      .then(() => this.#tally.attemptPlayed())
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#plays.delete(playing);
        this.#wake.resolve();
      });
    this.#plays.add(playing);
    // The job arrived after `drain()`, from a store that was unreachable.
    if (this.#isDraining) lane.giveBack();
  }

  #hear(news: News): void {
    const lane = this.#lanes.get(news.run);
    switch (news.type) {
      case "jobs":
        if (lane === undefined) void this.#join().catch(() => {});
        else {
          lane.isEmpty = false;
          this.#wake.resolve();
        }
        break;
      case "run":
        void this.#join().catch(() => {});
        void lane?.follow().catch(() => {});
        break;
      case "cancel":
        lane?.cancel(news.jobs);
        break;
      case "interrupt":
        lane?.interrupt(news.jobs);
        break;
      case "acknowledged":
    }
  }

  /** Joins new runs, and leaves runs that have ended. */
  async #join(): Promise<void> {
    const joined = this.#joining.then(async () => await this.#joinAll());
    this.#joining = joined.catch(() => {});
    await joined;
  }

  async #joinAll(): Promise<void> {
    if (this.#isDraining) return;
    const { store, place } = this.#options;
    const runs = await readRuns(store);
    const known = new Map(runs.map((entry) => [entry.run, entry]));
    for (const [run, lane] of this.#lanes) {
      const entry = known.get(run);
      const isOver = entry === undefined || entry.termsHash !== lane.entry.termsHash;
      if (isOver) lane.cancel([...lane.playingIds]);
      // A run without a hand-out may get one again, so its running attempts continue.
      if (!isOver && entry.isAlive) continue;
      if (lane.isBusy) {
        lane.isLeft = true;
        continue;
      }
      this.#lanes.delete(run);
      await lane[Symbol.asyncDispose]();
      if (!lane.isTakenOut) this.#left.set(run, lane);
      this.#note("leaves", `leaves run ${run}`);
    }
    for (const entry of runs) {
      if (isForgotten(entry, store.wallNow())) await this.#forget(entry);
      if (!entry.isAlive) continue;
      const lane = this.#lanes.get(entry.run);
      if (lane !== undefined) {
        lane.isLeft = false;
        lane.sharesResults = entry.probe !== undefined;
        continue;
      }
      const why = (await this.#reasonToRefuse(entry, place)) ?? (await this.#open(entry));
      if (why !== undefined && this.#refused.get(entry.run) !== why) {
        this.#refused.set(entry.run, why);
        this.#note("refuses", `refuses run ${entry.run}: ${why}`);
        await this.#giveSign();
      }
    }
    for (const run of this.#refused.keys()) if (!known.has(run)) this.#refused.delete(run);
  }

  /** Joins a run. Returns the reason if the files of its side columns cannot be created. */
  async #open(entry: RunEntry): Promise<string | undefined> {
    const { store, place, redactor, columnsOf } = this.#options;
    const { lookForLostMs = Math.ceil(this.#leaseMs / 2) } = this.#options;
    const forgottenCount = this.#forgottenCount;
    const columnsDir = this.#setup.columns && columnsOf?.(entry.run);
    const opened = RunLane.open({
      store,
      entry,
      worker: this.name,
      setup: this.#setup,
      place,
      columnsDir,
      redactor,
      leaseMs: this.#leaseMs,
      lookForLostMs,
      onTrouble: (text) => this.#note("trouble", text),
      onForgotten: () => this.#comeBack(),
    });
    const lane = await opened.catch((error: unknown) => {
      if (error instanceof UsageError) return error.message;
      throw error;
    });
    if (typeof lane === "string") return lane;
    // The store lost this worker's registration in the meantime. The worker joins again with the
    // next heartbeat.
    if (forgottenCount !== this.#forgottenCount) lane.lose();
    this.#refused.delete(entry.run);
    this.#lanes.set(entry.run, lane);
    this.#note("joins", `joins run ${entry.run} of ${entry.host} (${entry.environment})`);
    this.#wake.resolve();
    return undefined;
  }

  /** Describes in one line why a run is refused. */
  async #reasonToRefuse(
    { terms, probe, run }: RunEntry,
    place: SharedPlace | undefined,
  ): Promise<string | undefined> {
    const difference = describeDifference(this.#options.terms, terms);
    if (difference !== undefined) return difference;
    if (this.#setup.columns !== undefined && this.#options.columnsOf === undefined) {
      return "its rows have side columns, and no --shared DIR is given here";
    }
    if (probe === undefined) return undefined;
    if (place === undefined) return "it shares a place (--shared), and no --shared is given here";
    const found = await place.read(probe, 1_000).catch((error: unknown) => describeError(error));
    if (typeof found === "string") return `the shared place ${place.shown} fails: ${found}`;
    if (found?.toString("utf8") === run) return undefined;
    return `the shared place ${place.shown} is not the run's: its file ${probe} is not there`;
  }

  /** Removes a run that has been abandoned for days from the store. */
  async #forget({ run }: RunEntry): Promise<void> {
    const { store } = this.#options;
    const queue = new store.bullmq.Queue(queueName(run), store.bullOptions);
    queue.on("error", () => {});
    await queue.obliterate({ force: true });
    await queue.close();
    await forgetRun(store, run);
  }

  #beatOn(): void {
    const { clock } = this.#options.store;
    this.#callOffBeat = clock.after(this.#leaseMs / beatsPerLease, () => {
      void this.#keepUp()
        .catch(() => {
          // The store is unreachable. `#checkContact()` handles it.
        })
        .finally(() => {
          if (!this.#hasLeft) this.#beatOn();
        });
    });
  }

  #watchOn(): void {
    this.#callOffWatch = this.#options.store.clock.after(this.#leaseMs / 20, () => {
      this.#checkContact();
      this.#watchOn();
    });
  }

  async #keepUp(): Promise<void> {
    await this.#giveSign();
    await this.#options.store.readClock();
    for (const lane of this.#lanes.values()) {
      await lane.renew();
      await lane.follow();
    }
    await this.#join();
    for (const [run, lane] of this.#left) {
      const hasJoinedAgain = this.#lanes.has(run);
      if (!hasJoinedAgain) await lane.takeOut();
      if (hasJoinedAgain || lane.isTakenOut) this.#left.delete(run);
    }
  }

  async #giveSign(): Promise<void> {
    const { store, concurrency, terms, setup } = this.#options;
    // A process that was suspended may reach this point after its lease. Then its attempts are
    // lost.
    this.#checkContact();
    const askedAtMs = store.clock.now();
    const playing = [...this.#lanes].map(([run, lane]) => [run, lane.playingCount] as const);
    const counts = await writeWorker(
      store,
      {
        entry: 1,
        worker: this.name,
        host: hostname(),
        pid: process.pid,
        concurrency,
        turnwright: terms["turnwright"] ?? "unknown",
        environment: setup.environment.name,
        state: this.#isDraining ? "draining" : "working",
        playing: Object.fromEntries(playing.filter(([, count]) => count > 0)),
        ...this.#tally.read(),
        startedAtMs: this.#startedAtMs,
        atMs: store.wallNow(),
        refuses: Object.fromEntries(this.#refused),
      },
      { leaseMs: this.#leaseMs, isNext: this.#isKnown },
    );
    if (!counts) {
      this.#beForgotten();
      if (!this.#hasLeft) await this.#giveSign();
      return;
    }
    this.#isKnown = true;
    this.#lastContactMs = askedAtMs;
    if (!this.#isCutOff) return;
    this.#isCutOff = false;
    this.#note("contact", "reaches the queue's store again");
    for (const lane of this.#lanes.values()) await lane.follow();
    this.#wake.resolve();
  }

  /**
   * Handles the loss of this worker's entry: the store lost its data, or declared this worker dead.
   * The hand-out did not wait for the worker's samples, so they are dropped and the worker joins
   * its runs again.
   */
  #beForgotten(): void {
    if (this.#isKnown) {
      this.#note(
        "contact",
        "is no longer known to the queue's store: its attempts are dropped, and it joins its runs again",
      );
    }
    this.#isKnown = false;
    this.#forgottenCount += 1;
    this.#isCutOff = true;
    for (const lane of this.#lanes.values()) lane.lose();
  }

  /**
   * Sends a heartbeat immediately, because the store has no entry of this worker. If the store refuses it, the next
   * heartbeat detects the loss again.
   */
  #comeBack(): void {
    if (this.#hasLeft) return;
    this.#beForgotten();
    void this.#giveSign().catch(() => {});
  }

  /**
   * Stops all attempts when the lease has expired, because no sample from after the lease may be
   * delivered. Starts no turn after 0.7 of the lease.
   */
  #checkContact(): void {
    const silentMs = this.#options.store.clock.now() - this.#lastContactMs;
    if (silentMs >= this.#leaseMs) for (const lane of this.#lanes.values()) lane.lose();
    if (this.#isCutOff || silentMs < this.#leaseMs * cutOffShare) return;
    this.#isCutOff = true;
    this.#note("contact", "cannot reach the queue's store: starts no turn until it can");
    for (const lane of this.#lanes.values()) lane.cutOff();
  }

  #note(about: WorkerNote["about"], text: string): void {
    this.#options.onNote?.({ about, text });
  }
}
