import { isPromise } from "node:util/types";
import { UsageError, describeError } from "../../errors.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import type { EpisodeGroup } from "./group.ts";
import type { Listeners } from "./listeners.ts";
import type { RunTally } from "../run-progress.ts";
import type { PolicyVersions } from "../policy/staleness.ts";
import type { StartRunOptions } from "../start-run-options.ts";

interface GroupDeliveryOptions extends Pick<
  StartRunOptions,
  "folder" | "redeliver" | "source" | "grouping" | "setup" | "onEpisode"
> {
  readonly versions: PolicyVersions;
  readonly tally: RunTally;
  /** Calls the source's `onGroupEnd()`. */
  readonly listeners: Listeners;
  /** Called when there may be room for another group. */
  readonly onRoom: () => void;
  /** Called after a group that counted as finished was left out, because it became too old while it waited. */
  readonly onWithdrawn: () => Promise<void>;
}

/** Filters groups that have ended, and delivers them to the code that iterates over the run. */
export class GroupDelivery {
  readonly #options: GroupDeliveryOptions;
  readonly #ready: EpisodeGroup[] = [];
  #waiting: Resolvers<void> | undefined;
  #hasEnded = false;
  /** The number of groups that were started and not left out. */
  offeredCount = 0;
  /** The number of groups that the iteration has yielded. */
  deliveredCount = 0;
  /** The number of groups that have ended in this start. */
  endedCount = 0;
  /** True once a caller iterates over the run. */
  #isIterated = false;
  /** True while `onEpisode` runs. */
  #isReporting = false;
  /** The indexes of groups that were taken in earlier starts. */
  takenBefore: ReadonlySet<number> = new Set();

  constructor(options: GroupDeliveryOptions) {
    this.#options = options;
  }

  /** The number of groups that wait to be taken. */
  get readyCount(): number {
    return this.#ready.length;
  }

  /**
   * The number of groups that a trainer may have trained on in this start. A trainer that iterates over the run may
   * have trained on the groups that were yielded. A trainer that uses `onEpisode` may train on a group as soon as it
   * has ended. Every caller counts as such a trainer while `onEpisode` runs, or if nothing iterates over the run.
   */
  get trainableCount(): number {
    return this.#countTrainable(this.#isReporting);
  }

  /**
   * The number of groups that a trainer may have trained on in its next step, which a caller with `onEpisode` may make
   * at any time.
   */
  get trainableNextCount(): number {
    return this.#countTrainable(this.#options.onEpisode !== undefined);
  }

  #countTrainable(mayTrainByEpisode: boolean): number {
    if (this.#isIterated && !mayTrainByEpisode) return this.deliveredCount;
    return Math.max(this.deliveredCount, this.endedCount);
  }

  /** Runs a listener that is called with an episode. */
  whileReporting<Answer>(listener: () => Answer): Answer {
    this.#isReporting = true;
    try {
      return listener();
    } finally {
      this.#isReporting = false;
    }
  }

  /** True if no further group follows. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Ends the iteration after the groups that are waiting. */
  end(): void {
    this.#hasEnded = true;
    this.#waiting?.resolve();
  }

  /** Yields groups as they end. A group counts as taken when the next one is requested. */
  async *take(): AsyncGenerator<EpisodeGroup> {
    this.#isIterated = true;
    for (;;) {
      const group = this.#ready.shift();
      if (group !== undefined) {
        this.#options.onRoom();
        const due = await this.#stillDue(group);
        if (due === undefined) continue;
        this.deliveredCount += 1;
        yield due;
        await this.#writeTaken(group);
        continue;
      }
      if (this.#hasEnded) return;
      this.#waiting ??= withResolvers();
      await this.#waiting.promise;
    }
  }

  /** Reports a complete group to the source, and delivers it unless a filter or its age forbids that. */
  async conclude(complete: EpisodeGroup): Promise<void> {
    if (this.takenBefore.has(complete.groupIndex)) {
      // An attempt was played again. The group was taken in an earlier start, and is not delivered twice.
      this.#makeRoom();
      return;
    }
    const { folder, grouping, listeners, redeliver, setup, source, tally, versions } =
      this.#options;
    const aged = this.#withStaleness(complete);
    const { staleness } = aged;
    listeners.call(`call onGroupEnd of the source of tasks for ${aged.groupId}`, () =>
      source.onGroupEnd?.(aged),
    );
    const verdict = grouping.keep === undefined || askFilter(grouping.keep, aged);
    const reason = verdict === true ? versions.reasonToDrop(aged) : verdict || "filtered";
    const { groupIndex, groupId } = aged;
    if (reason !== undefined) {
      tally.groupLeftOut(staleness);
      await this.#leaveOut(aged, reason);
      return;
    }
    if (redeliver) {
      const details = { groupIndex, groupId, ...(staleness !== undefined && { staleness }) };
      await folder?.writeEvent({ type: "group-finished", atMs: setup.now(), ...details });
    }
    this.add(complete, staleness);
  }

  /** Adds a group to those that wait to be taken. */
  add(group: EpisodeGroup, staleness?: number): void {
    this.#options.tally.groupFinished(staleness);
    this.#ready.push(group);
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  /** Returns the group with its current staleness; `undefined` if it became too old while it waited. */
  async #stillDue(group: EpisodeGroup): Promise<EpisodeGroup | undefined> {
    const { onWithdrawn, tally, versions } = this.#options;
    const aged = this.#withStaleness(group);
    const reason = versions.reasonToDrop(aged);
    if (reason === undefined) return versions.mark(aged);
    tally.groupWithdrawn();
    await this.#leaveOut(aged, reason);
    await onWithdrawn();
    return undefined;
  }

  #withStaleness(group: EpisodeGroup): EpisodeGroup {
    const staleness = this.#options.versions.stalenessOf(group);
    return { ...group, ...(staleness !== undefined && { staleness }) };
  }

  async #leaveOut({ groupIndex, groupId, staleness }: EpisodeGroup, reason: string): Promise<void> {
    const { folder, setup } = this.#options;
    const details = { groupIndex, groupId, ...(staleness !== undefined && { staleness }) };
    this.#makeRoom();
    await folder?.writeEvent({ type: "group-left-out", atMs: setup.now(), ...details, reason });
  }

  /** Allows another group to start in place of one that is not delivered. */
  #makeRoom(): void {
    this.offeredCount -= 1;
    this.#options.onRoom();
  }

  async #writeTaken({ groupIndex }: EpisodeGroup): Promise<void> {
    const { folder, redeliver = false, setup } = this.#options;
    if (!redeliver) return;
    await folder?.writeEvent({ type: "group-taken", atMs: setup.now(), groupIndex });
  }
}

type Filter = NonNullable<StartRunOptions["grouping"]["keep"]>;

/** Calls the caller's filter and checks its verdict. */
function askFilter(keep: Filter, group: EpisodeGroup): boolean | string {
  let verdict: unknown;
  try {
    verdict = keep(group);
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(`Cannot filter group ${group.groupId}: ${describeError(cause)}`, {
      cause,
    });
  }
  if (typeof verdict === "boolean" || typeof verdict === "string") return verdict;
  // A rejection of this promise would end the process, because nothing awaits it.
  if (isPromise(verdict)) verdict.catch(() => {});
  throw new UsageError(
    `Cannot filter group ${group.groupId}: the filter returned ${describeVerdict(verdict)}, expected true, false or ` +
      "the reason to leave it out",
  );
}

function describeVerdict(verdict: unknown): string {
  if (verdict === undefined) return "nothing (a forgotten return?)";
  return isPromise(verdict) ? "a promise (a forgotten await?)" : describeError(verdict);
}
