import { RolloutError, UsageError, isOwnBug } from "../../errors.ts";
import { createAbortController } from "../../async/abort-controller.ts";
import { systemClock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import type { AskOptions } from "./ask-source.ts";
import { groupStartedEvent, type GroupStartedEvent } from "../folder/started-groups.ts";
import type { AttemptJob, StartedTask, GroupLedger } from "./group-ledger.ts";
import type { GroupDelivery } from "./group-delivery.ts";
import { toTaskRecord } from "../folder/task-record.ts";
import type { StartedAttempt } from "../folder/same-groups.ts";
import type { PolicyVersions } from "../policy/staleness.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import type { SourcedTask } from "./task-source.ts";

/** What decides which attempts are next. */
interface JobSchedulerOptions extends Pick<
  StartRunOptions,
  "admission" | "folder" | "redactor" | "setup" | "source"
> {
  readonly book: GroupLedger;
  readonly outlet: GroupDelivery;
  readonly versions: PolicyVersions;
}

/** How often an engine is asked for its version by which the run goes on, and how long it may take, milliseconds. */
const askVersion = { everyMs: 1_000, mostMs: 5_000 };

/** Gives out attempts, one at a time, and begins groups where there is room for them. */
export class JobScheduler {
  readonly #options: JobSchedulerOptions;
  /** Aborted when nothing is begun any more. */
  readonly #ending = createAbortController();
  #room: Resolvers<void> | undefined;
  #drawing: Promise<unknown> = Promise.resolve();
  /** A further group, where one is waited for. */
  #beginning: Promise<"begun" | "none"> | undefined;
  /** Why the source gives nothing any more that can be played. */
  #fault: { readonly error: unknown } | undefined;

  constructor(options: JobSchedulerOptions) {
    this.#options = options;
  }

  /** Whether nothing is begun any more. */
  get isClosed(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Aborts when nothing is begun any more. */
  get closing(): AbortSignal {
    return this.#ending.signal;
  }

  /** Begins nothing any more. */
  close(): void {
    this.#ending.abort();
    this.lookAgain();
    this.#options.book.wake();
  }

  /**
   * Waits until nothing is drawn any more: attempts of branching groups are played meanwhile, and whoever played
   * the last of them has not waited for it.
   *
   * @throws what was wrong with a task, or with the source: what was begun before comes to its end first.
   */
  async settle(): Promise<void> {
    await this.#beginning;
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  /** There may be room for another group. */
  lookAgain(): void {
    this.#room?.resolve();
  }

  /**
   * The next attempt, of the oldest group that has one; begins another group where none has.
   *
   * @returns nothing where there will be none any more.
   */
  async next(): Promise<AttemptJob | undefined> {
    const drawn = this.#drawing.then(async () => await this.#findJob());
    this.#drawing = drawn.catch(() => {});
    return await drawn;
  }

  async #findJob(): Promise<AttemptJob | undefined> {
    const { book } = this.#options;
    for (;;) {
      // Some may have waited for their turn as it was closed.
      if (this.isClosed) return undefined;
      const job = book.takeJob();
      if (job !== undefined) return job;
      // Attempts that waited for another one may come while a further group is waited for.
      const next = await this.#nextNews();
      if (this.isClosed) return undefined;
      if (next !== "none") continue;
      // Some may have come in the moment in which that was found out.
      const late = book.takeJob();
      if (late !== undefined || !book.isWaiting) return late;
      await book.untilBranched();
    }
  }

  /** Begins another group, unless attempts of those that are there can be taken before that is done. */
  async #nextNews(): Promise<"begun" | "none" | "branched"> {
    const { book } = this.#options;
    if (this.#beginning === undefined) {
      this.#beginning = this.#beginGroup();
      // Where nobody waits for it when it fails, whoever comes next is told.
      this.#beginning.catch(() => {});
    }
    const next = book.isBranching
      ? await Promise.race([this.#beginning, book.untilBranched()])
      : await this.#beginning;
    if (next !== "branched") this.#beginning = undefined;
    return next;
  }

  async #beginGroup(): Promise<"begun" | "none"> {
    const { book, folder, outlet, setup } = this.#options;
    // For a group that there is not nobody waits: room for it may never come.
    if (this.#fault !== undefined || !book.mayBegin || !(await this.#waitForRoom())) return "none";
    const drawn = await this.#drawNoted();
    if (drawn === undefined) return "none";
    outlet.offeredCount += 1;
    const { begun, event } = drawn;
    if (event !== undefined) await folder?.writeEvent({ ...event, atMs: setup.now() });
    book.release(begun);
    return "begun";
  }

  /** Draws a task, with what is to be noted of it. What cannot be played ends no more than the drawing. */
  async #drawNoted(): Promise<{ begun: StartedTask; event?: GroupStartedEvent } | undefined> {
    const { folder, redactor, setup } = this.#options;
    try {
      const begun = await this.#drawGroup();
      if (begun === undefined || !begun.isNoted || folder === undefined) return begun && { begun };
      const { fork } = begun;
      const { groupIndex, groupId, task } = begun.group;
      const noted = toTaskRecord(task, { environment: setup.environment, redactor });
      const group = { groupIndex, groupId, ...noted, ...(fork && { fork }) };
      return { begun, event: groupStartedEvent(group, redactor) };
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof RolloutError)) throw error;
      this.#fault = { error };
      return undefined;
    }
  }

  /** Draws a task; nothing where the run stops first. */
  async #drawGroup(): ReturnType<GroupLedger["begin"]> {
    return await this.#unlessClosed(async (options) => await this.#options.book.begin(options));
  }

  /**
   * Holds what earlier starts finished or began against the source (see `GroupBook.holdEarlier()`): a start with other
   * tasks is refused before anything of the folder is changed.
   */
  async holdEarlier(begun: readonly StartedAttempt[], wanted: ReadonlySet<number>): Promise<void> {
    await this.#unlessClosed(
      async (options) => await this.#options.book.holdEarlier(begun, wanted, options),
    );
  }

  /**
   * What a repeatable source gives for a group that has ended (see `GroupBook.ask()`).
   *
   * @returns nothing where the run stops first.
   * @throws UsageError where there is none in its place any more, and as `askSource()` does.
   */
  async askAgain(groupIndex: number): Promise<SourcedTask | undefined> {
    const { book } = this.#options;
    return await this.#unlessClosed(async (options) => {
      const sourced = await book.ask(groupIndex, options);
      if (sourced !== undefined) return sourced;
      throw new UsageError(
        `Cannot hand out group ${groupIndex} again: the source of tasks, which is repeatable, gives none in its ` +
          "place now; start with the same tasks in the same order, or in another folder",
      );
    });
  }

  /** What a source is asked; nothing where it was not done with that when nothing was begun any more. */
  async #unlessClosed<Given>(ask: (options: AskOptions) => Promise<Given>) {
    const { signal } = this.#ending;
    const { clock = systemClock } = this.#options.setup;
    try {
      return await ask({ signal, clock });
    } catch (error) {
      if (signal.aborted && error === signal.reason) return undefined;
      throw error;
    }
  }

  /** Waits until another group may be begun; false where the run stops first. */
  async #waitForRoom(): Promise<boolean> {
    const { admission, outlet, versions } = this.#options;
    const { ahead = Infinity } = admission;
    while (!this.isClosed) {
      const waitsForVersion = !versions.mayBegin(outlet.offeredCount);
      if (outlet.readyCount < ahead && !waitsForVersion) break;
      const room = withResolvers();
      this.#room = room;
      if (waitsForVersion && versions.announced === undefined) await this.#watchVersion(room);
      else await room.promise;
    }
    this.#room = undefined;
    return !this.isClosed;
  }

  /** Waits for news, and where none come for a while asks the engine: nothing is sampled that would show its version. */
  async #watchVersion(news: Resolvers<void>): Promise<void> {
    const { setup } = this.#options;
    const { clock = systemClock } = setup;
    let isDue = false;
    const callOff = clock.after(askVersion.everyMs, () => {
      isDue = true;
      news.resolve();
    });
    await news.promise;
    callOff();
    if (isDue) await this.askVersion();
  }

  /** Asks the engine which version it has, unless one was announced. */
  async askVersion(): Promise<void> {
    const { outlet, setup, versions } = this.#options;
    const { clock = systemClock, engine } = setup;
    if (this.isClosed || versions.announced !== undefined) return;
    try {
      // An engine may be anyone's, and heed no signal.
      const described = await withDeadline(async (signal) => await engine.describe({ signal }), {
        ms: askVersion.mostMs,
        signal: this.#ending.signal,
        clock,
        onLate: () => undefined,
      });
      versions.seeDescribed(described?.policyVersion, outlet);
    } catch (error) {
      // Who cannot be asked now is asked again.
      if (isOwnBug(error)) throw error;
    }
  }
}
