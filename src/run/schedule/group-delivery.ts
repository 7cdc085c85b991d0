import { isPromise } from "node:util/types";
import { UsageError, describeError } from "../../errors.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import type { EpisodeGroup } from "./group.ts";
import type { Listeners } from "./listeners.ts";
import type { RunTally } from "../run-progress.ts";
import type { PolicyVersions } from "../policy/staleness.ts";
import type { StartRunOptions } from "../start-run-options.ts";

/** What groups pass before they are handed out. */
interface GroupDeliveryOptions extends Pick<
  StartRunOptions,
  "folder" | "redeliver" | "source" | "grouping" | "setup" | "onEpisode"
> {
  readonly versions: PolicyVersions;
  readonly tally: RunTally;
  /** By whom the source is told. */
  readonly listeners: Listeners;
  /** Told when there may be room for another group. */
  readonly onRoom: () => void;
  /** Told of a group that was counted as finished, and has been left out when it was to be taken. */
  readonly onWithdrawn: () => Promise<void>;
}

/** Where groups that have ended wait to be taken. */
export class GroupDelivery {
  readonly #options: GroupDeliveryOptions;
  readonly #ready: EpisodeGroup[] = [];
  #waiting: Resolvers<void> | undefined;
  #hasEnded = false;
  /** Groups that are offered to whoever takes them, or will be: those that are left out are none. */
  offeredCount = 0;
  /** Groups that were handed out. */
  handedCount = 0;
  /** Groups that have ended in this start. */
  endedCount = 0;
  /** Somebody iterates over the run. */
  #isTaken = false;
  /** Somebody is told of an episode. */
  #isTelling = false;
  /** Places of groups that earlier starts handed out and that were taken. */
  takenBefore: ReadonlySet<number> = new Set();

  constructor(options: GroupDeliveryOptions) {
    this.#options = options;
  }

  /** Groups that wait to be taken. */
  get readyCount(): number {
    return this.#ready.length;
  }

  /**
   * Groups that may have been trained on in this start: those that were handed out or, where nobody iterates over the
   * run, as a trainer does that takes its episodes from `onEpisode`, those that have ended. So it is while one is told
   * of an episode: whoever trains there does not wait until its group is handed out.
   */
  get trainableCount(): number {
    return this.#countTrainable(this.#isTelling);
  }

  /** The same for one step: whoever is told of episodes may take it at any time, while others drain the groups. */
  get trainableNextCount(): number {
    return this.#countTrainable(this.#options.onEpisode !== undefined);
  }

  #countTrainable(mayBeByEpisode: boolean): number {
    if (this.#isTaken && !mayBeByEpisode) return this.handedCount;
    return Math.max(this.handedCount, this.endedCount);
  }

  /** Tells somebody of an episode. */
  tell<Answer>(listener: () => Answer): Answer {
    this.#isTelling = true;
    try {
      return listener();
    } finally {
      this.#isTelling = false;
    }
  }

  /** Whether there will be no further ones. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** There will be no further ones. */
  end(): void {
    this.#hasEnded = true;
    this.#waiting?.resolve();
  }

  /** Groups as they end; a group counts as taken when the next one is asked for. */
  async *take(): AsyncGenerator<EpisodeGroup> {
    this.#isTaken = true;
    for (;;) {
      const group = this.#ready.shift();
      if (group !== undefined) {
        this.#options.onRoom();
        const due = await this.#stillDue(group);
        if (due === undefined) continue;
        this.handedCount += 1;
        yield due;
        await this.#noteTaken(group);
        continue;
      }
      if (this.#hasEnded) return;
      this.#waiting ??= withResolvers();
      await this.#waiting.promise;
    }
  }

  /** Tells the source of a group that has ended, and hands it out unless something speaks against it. */
  async conclude(whole: EpisodeGroup): Promise<void> {
    if (this.takenBefore.has(whole.groupIndex)) {
      // An attempt was played again. Whoever took the group has the others: once more is twice.
      this.#makeRoom();
      return;
    }
    const { folder, grouping, listeners, redeliver, setup, source, tally, versions } =
      this.#options;
    const aged = this.#aged(whole);
    const { staleness } = aged;
    listeners.call(`tell the source of tasks about ${aged.groupId}`, () =>
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
      const about = { groupIndex, groupId, ...(staleness !== undefined && { staleness }) };
      await folder?.writeEvent({ type: "group-finished", atMs: setup.now(), ...about });
    }
    this.hand(whole, staleness);
  }

  /** Hands a group out. */
  hand(group: EpisodeGroup, staleness?: number): void {
    this.#options.tally.groupFinished(staleness);
    this.#ready.push(group);
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  /** The group as it is handed out, for it has aged while it waited; nothing where it is too old by now. */
  async #stillDue(group: EpisodeGroup): Promise<EpisodeGroup | undefined> {
    const { onWithdrawn, tally, versions } = this.#options;
    const aged = this.#aged(group);
    const reason = versions.reasonToDrop(aged);
    if (reason === undefined) return versions.mark(aged);
    tally.groupWithdrawn();
    await this.#leaveOut(aged, reason);
    await onWithdrawn();
    return undefined;
  }

  /** The group with how old its oldest token is by now. */
  #aged(group: EpisodeGroup): EpisodeGroup {
    const staleness = this.#options.versions.stalenessOf(group);
    return { ...group, ...(staleness !== undefined && { staleness }) };
  }

  async #leaveOut({ groupIndex, groupId, staleness }: EpisodeGroup, reason: string): Promise<void> {
    const { folder, setup } = this.#options;
    const about = { groupIndex, groupId, ...(staleness !== undefined && { staleness }) };
    this.#makeRoom();
    await folder?.writeEvent({ type: "group-left-out", atMs: setup.now(), ...about, reason });
  }

  /** Nobody takes a group: another one may be begun in its place. */
  #makeRoom(): void {
    this.offeredCount -= 1;
    this.#options.onRoom();
  }

  async #noteTaken({ groupIndex }: EpisodeGroup): Promise<void> {
    const { folder, redeliver = false, setup } = this.#options;
    if (!redeliver) return;
    await folder?.writeEvent({ type: "group-taken", atMs: setup.now(), groupIndex });
  }
}

type Filter = NonNullable<StartRunOptions["grouping"]["keep"]>;

/** A filter may be anyone's: what is no verdict is guessed at in neither way. */
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
  // Nobody waits for it, and Node would end the process if it were refused.
  if (isPromise(verdict)) verdict.catch(() => {});
  throw new UsageError(
    `Cannot filter group ${group.groupId}: it gave ${describeVerdict(verdict)}, expected true, false or ` +
      "why it is left out",
  );
}

function describeVerdict(verdict: unknown): string {
  if (verdict === undefined) return "nothing (a forgotten return?)";
  return isPromise(verdict) ? "a promise (a forgotten await?)" : describeError(verdict);
}
