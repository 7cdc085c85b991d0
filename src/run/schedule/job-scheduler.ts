import { RolloutError, UsageError, isOwnBug } from "../../errors.ts";
import { createAbortController } from "../../async/abort-controller.ts";
import { systemClock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import type { AskOptions } from "./ask-source.ts";
import { groupStartedEvent, type GroupStartedEvent } from "../folder/started-groups.ts";
import type { GroupDelivery } from "./group-delivery.ts";
import type { GroupLedger } from "./group-ledger.ts";
import type { AttemptJob, StartedTask } from "./open-group.ts";
import { toTaskRecord } from "../folder/task-record.ts";
import type { StartedAttempt } from "../folder/same-groups.ts";
import type { PolicyVersions } from "../policy/staleness.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import type { Fork, SourcedTask } from "./task-source.ts";

interface JobSchedulerOptions extends Pick<
  StartRunOptions,
  "admission" | "folder" | "redactor" | "setup" | "source"
> {
  readonly ledger: GroupLedger;
  readonly delivery: GroupDelivery;
  readonly versions: PolicyVersions;
  /** Copies the side columns of the turns that a group of forks shares with an attempt of another folder. */
  readonly bringColumns: (fork: Fork) => Promise<void>;
}

/** Requests for the engine's policy version: the interval between two, and the timeout of one, in milliseconds. */
const askVersion = { everyMs: 1_000, mostMs: 5_000 };

/** Hands out attempts to play, one at a time, and starts groups while there is room for them. */
export class JobScheduler {
  readonly #options: JobSchedulerOptions;
  readonly #closing = createAbortController();
  #room: Resolvers<void> | undefined;
  /** The last call of `next()`: calls run one after another. */
  #lastNext: Promise<unknown> = Promise.resolve();
  /** The start of another group, while a worker waits for it. */
  #starting: Promise<"started" | "none"> | undefined;
  /** The error of the source, or of a task that cannot be played. No further group is started then. */
  #fault: { readonly error: unknown } | undefined;

  constructor(options: JobSchedulerOptions) {
    this.#options = options;
  }

  /** True when no further attempt is started. */
  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborts when no further attempt is started. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Starts no further attempt. */
  close(): void {
    this.#closing.abort();
    this.lookAgain();
    this.#options.ledger.queue.wake();
  }

  /**
   * Waits until no group is being started. With branching groups, a worker does not wait for that, so the start may
   * still run after all workers have ended.
   *
   * @throws the error of the source or of a task, after the attempts that were started before have ended.
   */
  async settle(): Promise<void> {
    await this.#starting;
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  /** Checks again whether another group may start. */
  lookAgain(): void {
    this.#room?.resolve();
  }

  /**
   * Returns the next attempt of the oldest group that has one. Starts another group if no group has one.
   *
   * @returns `undefined` if there are no further attempts.
   */
  async next(): Promise<AttemptJob | undefined> {
    const found = this.#lastNext.then(async () => await this.#findJob());
    this.#lastNext = found.catch(() => {});
    return await found;
  }

  async #findJob(): Promise<AttemptJob | undefined> {
    const { queue } = this.#options.ledger;
    for (;;) {
      // The scheduler may have been closed while this call waited for earlier ones.
      if (this.isClosed) return undefined;
      const job = queue.take();
      if (job !== undefined) return job;
      // Attempts that waited for the first one of their group may be released before another group has started.
      const next = await this.#startOrBranch();
      if (this.isClosed) return undefined;
      if (next !== "none") continue;
      const late = queue.take();
      if (late !== undefined || !queue.isWaiting) return late;
      await queue.untilBranched();
    }
  }

  /** Starts another group. Returns `branched` if waiting attempts of an open group are released first. */
  async #startOrBranch(): Promise<"started" | "none" | "branched"> {
    const { queue } = this.#options.ledger;
    if (this.#starting === undefined) {
      this.#starting = this.#startGroup();
      // The next call awaits it too, and throws its error.
      this.#starting.catch(() => {});
    }
    const next = queue.isBranching
      ? await Promise.race([this.#starting, queue.untilBranched()])
      : await this.#starting;
    if (next !== "branched") this.#starting = undefined;
    return next;
  }

  async #startGroup(): Promise<"started" | "none"> {
    const { ledger, folder, delivery, setup } = this.#options;
    // Room is awaited only if there is a group left: it might never come.
    if (this.#fault !== undefined || !ledger.mayStart || !(await this.#waitForRoom()))
      return "none";
    const drawn = await this.#drawTask();
    if (drawn === undefined) return "none";
    delivery.offeredCount += 1;
    const { started, event } = drawn;
    if (event !== undefined) await folder?.writeEvent({ ...event, atMs: setup.now() });
    ledger.release(started);
    return "started";
  }

  /** Draws a task, with the event that records it. Keeps an error for `settle()`: open groups are played to their end. */
  async #drawTask(): Promise<
    { readonly started: StartedTask; readonly event?: GroupStartedEvent } | undefined
  > {
    const { folder, redactor, setup } = this.#options;
    try {
      const started = await this.#unlessClosed(
        async (options) => await this.#options.ledger.startNext(options),
      );
      const fork = started?.fork;
      // A later start takes the group from its event, which does not say where the columns are.
      if (fork !== undefined) await this.#options.bringColumns(fork);
      if (started === undefined || !started.isRecorded || folder === undefined) {
        return started && { started };
      }
      const { groupIndex, groupId, task } = started.group;
      const record = toTaskRecord(task, { environment: setup.environment, redactor });
      const group = { groupIndex, groupId, ...record, ...(fork && { fork }) };
      return { started, event: groupStartedEvent(group, redactor) };
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof RolloutError)) throw error;
      this.#fault = { error };
      return undefined;
    }
  }

  /** Checks that a repeatable source gives the groups of earlier starts again (see `GroupLedger.compareWithSource()`). */
  async compareWithSource(
    started: readonly StartedAttempt[],
    wanted: ReadonlySet<number>,
  ): Promise<void> {
    await this.#unlessClosed(
      async (options) => await this.#options.ledger.compareWithSource(started, wanted, options),
    );
  }

  /**
   * Asks a repeatable source for a complete group again.
   *
   * @returns `undefined` if the run stops first.
   * @throws UsageError if the source has no group at that index any more, and as `askSource()` does.
   */
  async askAgain(groupIndex: number): Promise<SourcedTask | undefined> {
    const { ledger } = this.#options;
    return await this.#unlessClosed(async (options) => {
      const sourced = await ledger.ask(groupIndex, options);
      if (sourced !== undefined) return sourced;
      throw new UsageError(
        `Cannot deliver group ${groupIndex} again: the repeatable source of tasks gives no group at that index now; ` +
          "start with the same tasks in the same order, or in another folder",
      );
    });
  }

  /** Asks the source. Returns `undefined` if the scheduler closes before the source answers. */
  async #unlessClosed<Given>(ask: (options: AskOptions) => Promise<Given>) {
    const { signal } = this.#closing;
    const { clock = systemClock } = this.#options.setup;
    try {
      return await ask({ signal, clock });
    } catch (error) {
      if (signal.aborted && error === signal.reason) return undefined;
      throw error;
    }
  }

  /** Waits until another group may start; returns false if the scheduler closes first. */
  async #waitForRoom(): Promise<boolean> {
    const { admission, delivery, versions } = this.#options;
    const { ahead = Infinity } = admission;
    while (!this.isClosed) {
      const waitsForVersion = !versions.mayStart(delivery.offeredCount);
      if (delivery.readyCount < ahead && !waitsForVersion) break;
      const room = withResolvers();
      this.#room = room;
      if (waitsForVersion && versions.announced === undefined) await this.#pollVersion(room);
      else await room.promise;
    }
    this.#room = undefined;
    return !this.isClosed;
  }

  /**
   * Waits for room. After a second without room, requests the policy version from the engine, because no sampled token
   * shows a new version.
   */
  async #pollVersion(room: Resolvers<void>): Promise<void> {
    const { clock = systemClock } = this.#options.setup;
    let isDue = false;
    const cancelTimer = clock.after(askVersion.everyMs, () => {
      isDue = true;
      room.resolve();
    });
    await room.promise;
    cancelTimer();
    if (isDue) await this.askVersion();
  }

  /** Requests the policy version from the engine, unless a version was announced. */
  async askVersion(): Promise<void> {
    const { delivery, setup, versions } = this.#options;
    const { clock = systemClock, engine } = setup;
    if (this.isClosed || versions.announced !== undefined) return;
    try {
      // A caller's engine may ignore the signal.
      const described = await withDeadline(async (signal) => await engine.describe({ signal }), {
        ms: askVersion.mostMs,
        signal: this.#closing.signal,
        clock,
        onLate: () => undefined,
      });
      versions.seeDescribed(described?.policyVersion, delivery);
    } catch (error) {
      // An engine that fails is asked again a second later.
      if (isOwnBug(error)) throw error;
    }
  }
}
