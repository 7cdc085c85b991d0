import { InvariantError } from "../errors.ts";
import { systemClock } from "../internal/clock.ts";
import { withDeadline } from "../internal/deadline.ts";
import { withResolvers, type Resolvers } from "../internal/with-resolvers.ts";
import { begunEvent } from "./begun-groups.ts";
import type { AttemptJob, GroupBook } from "./group-book.ts";
import type { GroupOutlet } from "./group-outlet.ts";
import { noteTask } from "./noted-task.ts";
import type { PolicyVersions } from "./staleness.ts";
import type { StartRunOptions } from "./start-run-options.ts";

/** What decides which attempts are next. */
export interface JobDeskOptions extends Pick<StartRunOptions, "admission" | "folder" | "setup"> {
  readonly book: GroupBook;
  readonly outlet: GroupOutlet;
  readonly versions: PolicyVersions;
}

/** How often an engine is asked for its version by which the run goes on, and how long it may take, milliseconds. */
const askVersion = { everyMs: 1_000, mostMs: 5_000 };

/** How long a source may take to give a task that it was asked for before a stop, in milliseconds. */
const lastDrawMs = 5_000;

/** Gives out attempts, one at a time, and begins groups where there is room for them. */
export class JobDesk {
  readonly #options: JobDeskOptions;
  /** Aborted when nothing is begun any more. */
  readonly #ending = new AbortController();
  #room: Resolvers<void> | undefined;
  #drawing: Promise<unknown> = Promise.resolve();
  /** A further group, where one is waited for. */
  #beginning: Promise<"begun" | "none"> | undefined;

  constructor(options: JobDeskOptions) {
    this.#options = options;
  }

  /** Whether nothing is begun any more. */
  get isClosed(): boolean {
    return this.#ending.signal.aborted;
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
   */
  async settle(): Promise<void> {
    await this.#beginning;
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
    if (!(await this.#waitForRoom())) return "none";
    const { book, folder, outlet, setup } = this.#options;
    const begun = await this.#drawGroup();
    if (begun === undefined) return "none";
    outlet.offeredCount += 1;
    const { group, fork, isNoted } = begun;
    if (isNoted) {
      const { groupIndex, groupId, task } = group;
      const { environment, now } = setup;
      if (folder !== undefined) {
        const noted = noteTask(task, environment);
        const event = begunEvent({ groupIndex, groupId, ...noted, ...(fork && { fork }) });
        await folder.writeEvent({ ...event, atMs: now() });
      }
    }
    book.release(begun);
    return "begun";
  }

  /**
   * Draws a task. When nothing is begun any more the source is still given a moment, so that a task which
   * it has given away is noted; one that does not heed its signal is not waited for any longer.
   */
  async #drawGroup(): ReturnType<GroupBook["begin"]> {
    const { signal } = this.#ending;
    const { book, setup } = this.#options;
    const { clock = systemClock } = setup;
    const left = new AbortController();
    let callOff = (): void => {};
    const onClose = (): void => {
      callOff = clock.after(lastDrawMs, () => left.abort(signal.reason));
    };
    signal.addEventListener("abort", onClose, { once: true });
    try {
      return await withDeadline(async () => await book.begin({ signal }), {
        ms: Infinity,
        signal: left.signal,
        onLate: () => undefined,
      });
    } catch (error) {
      if (signal.aborted && (error === signal.reason || isAbort(error))) return undefined;
      throw error;
    } finally {
      signal.removeEventListener("abort", onClose);
      callOff();
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
    const { setup, versions } = this.#options;
    const { clock = systemClock, engine } = setup;
    let isDue = false;
    const callOff = clock.after(askVersion.everyMs, () => {
      isDue = true;
      news.resolve();
    });
    await news.promise;
    callOff();
    if (!isDue || this.isClosed || versions.announced !== undefined) return;
    try {
      // An engine may be anyone's, and heed no signal.
      const described = await withDeadline(async (signal) => await engine.describe({ signal }), {
        ...{ ms: askVersion.mostMs, signal: this.#ending.signal, clock },
        onLate: () => undefined,
      });
      versions.seeDescribed(described?.policyVersion);
    } catch (error) {
      // Who cannot be asked now is asked again.
      if (error instanceof InvariantError) throw error;
    }
  }
}

/** What Node's own functions throw whose signal is aborted. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
