import type { Episode } from "../../episode/episode.ts";
import { UsageError } from "../../errors.ts";
import type { EpisodeGroup } from "../schedule/group.ts";
import { readVersion } from "../disk/read-version.ts";
import { newerOf, newestOf, newestSince, versionsOf, maskBefore } from "./sampled-versions.ts";

/**
 * The maximum age of a group's tokens, and the treatment of older ones. A token's version is the one that the engine
 * names or, if that is not a whole number, the one that was announced before the token was sampled. A token without
 * either counts as too old for `drop` and `mask` as soon as any version is known. If none is announced, the current
 * version is the newest that sampled a finished episode.
 */
export interface StalenessOptions {
  /** The maximum number of versions since a token was sampled. At least 0. */
  readonly max: number;
  /**
   * `drop`: groups with older tokens are not delivered. `mask`: older tokens are removed from the loss. `mark`: groups
   * are delivered with their staleness. `wait`: no group is started that would be too old when it is trained. Without
   * announced versions, `wait` uses the versions of sampled tokens, and asks the engine while nothing is sampled. A
   * slow group is delivered at any age.
   */
  readonly beyond: "drop" | "mask" | "mark" | "wait";
  /** For `wait`: the number of groups that the trainer takes for each version. */
  readonly groupsPerVersion?: number;
}

/** The number of groups in this start so far. */
export interface GroupCounts {
  /** The number of groups that were delivered. */
  readonly deliveredCount: number;
  /** The number of groups that may have been trained on. Default: the delivered ones. */
  readonly trainableCount?: number;
  /** The number of groups that may have been trained on within one step. Default: `trainableCount`. */
  readonly trainableNextCount?: number;
}

/**
 * Tracks the policy's versions and the staleness of groups.
 *
 * For `wait`, it counts the trainer's steps in this start, from the first known version: the announced one or, if there
 * is none, the one that samples or that the engine names. Two rules correct the count. If enough groups for a step were
 * delivered before any version was known, the trainer may have made a step already. And the delivered groups limit the
 * number of steps. A version that is further ahead was not trained on groups of this start, for example because a
 * trainer loaded its checkpoint into an engine that had started with other weights.
 */
export class PolicyVersions {
  readonly #options: StalenessOptions | undefined;
  /** The version from which the trainer's steps are counted. */
  #first: number | undefined;
  /** The version up to which steps were counted last. */
  #counted: number | undefined;
  /** The last version that was announced in this start. */
  #announced: number | undefined;
  /** The newest version that sampled a token in this start, or that the engine named. */
  #seen: number | undefined;
  /** The newest version in any episode that was played or read, of this start or an earlier one. */
  #recalled: number | undefined;

  readonly #onProblem: (problem: string) => void;
  #hasReported = false;

  /** @param onProblem - Called once if staleness cannot be bounded because a version is unknown. */
  constructor(options: StalenessOptions | undefined, onProblem: (problem: string) => void) {
    this.#options = options;
    this.#onProblem = onProblem;
    if (options === undefined) return;
    const { max, beyond, groupsPerVersion } = options;
    if (!Number.isSafeInteger(max) || max < 0) {
      throw new UsageError(`Cannot bound staleness by ${max}: expected a number of at least 0`);
    }
    if (beyond === "wait" && !(groupsPerVersion !== undefined && groupsPerVersion >= 1)) {
      throw new UsageError(
        "Cannot wait for the trainer: groupsPerVersion is missing, expected how many groups it takes " +
          "for each version",
      );
    }
  }

  /**
   * The version that samples: the announced one, or else the newest known one; `undefined` if none is a whole number.
   * An announced version wins even if newer tokens exist, because their weights may have been lost.
   */
  get current(): number | undefined {
    return this.#announced ?? newerOf(this.#seen, this.#recalled);
  }

  /** The version that samples, as far as this start knows it. The trainer's steps are counted from this version. */
  get #currentHere(): number | undefined {
    return this.#announced ?? this.#seen;
  }

  /** True if groups have to wait for versions, but none is known in this start. */
  get lacksFirst(): boolean {
    return this.#options?.beyond === "wait" && this.#first === undefined;
  }

  /** The version that was announced last in this start. Undefined before the first announcement. */
  get announced(): number | undefined {
    return this.#announced;
  }

  /**
   * Announces the version that samples from now on.
   *
   * @param groups - The number of groups before the announcement.
   */
  announce(version: number, groups: GroupCounts): void {
    requireVersion(version);
    const current = this.#currentHere ?? version;
    if (version < current && this.#first !== undefined) {
      // A trainer that returns to older weights has still taken the groups of its steps so far.
      const stepCount = current - this.#first;
      this.#first = version - stepCount;
      // Groups that were delivered for one more step are used up: the trainer returned to older weights in its place.
      const { groupsPerVersion = 1 } = this.#options ?? {};
      const { deliveredCount, trainableCount = deliveredCount } = groups;
      if (Math.floor(trainableCount / groupsPerVersion) > stepCount) this.#first -= 1;
    }
    this.#countTo(version, groups);
    this.#announced = version;
  }

  /**
   * Records the versions of an episode. The newest version of this start's turns is current; other turns are of an
   * earlier start, and may be older, or newer if the engine returned to older weights.
   *
   * @param recordedCount - The number of turns that were recorded before this start.
   * @param groups - As for `announce()`.
   */
  see(episode: Episode, recordedCount: number, groups: GroupCounts): void {
    this.recall([episode]);
    const newest = newestSince(recordedCount, episode);
    if (newest !== undefined) this.#note(newest, groups);
  }

  /** Records the newest version of episodes. The version may be one of an earlier start. */
  recall(episodes: readonly Episode[]): void {
    this.#recalled = newerOf(this.#recalled, newestOf(episodes));
  }

  /**
   * Records the version that the engine names. Used while groups wait for a newer version that no trainer announces, or
   * when groups of earlier starts are delivered.
   *
   * @param groups - As for `announce()`.
   */
  seeDescribed(name = "", groups: GroupCounts): void {
    const version = readVersion(name);
    if (version !== undefined) this.#note(version, groups);
    else if (this.#options?.beyond === "wait") {
      this.#tellOnce(
        "The run waits for the trainer and cannot detect its progress: no version was announced, and the engine " +
          `describes its own as ${JSON.stringify(name)}, expected a whole number; announce each version, the ` +
          "first one with announcePolicy() when the run is started",
      );
    }
  }

  #note(version: number, groups: GroupCounts): void {
    this.#seen = Math.max(this.#seen ?? version, version);
    // With announced versions, only announcements count steps.
    if (this.#announced === undefined) this.#countTo(this.#seen, groups);
  }

  /**
   * Counts the trainer's steps up to a version (see the class), by the number of groups before the version was known.
   */
  #countTo(version: number, groups: GroupCounts): void {
    const { deliveredCount, trainableCount = deliveredCount } = groups;
    const { trainableNextCount = trainableCount } = groups;
    const { groupsPerVersion = 1 } = this.#options ?? {};
    // Announcing a version again does not change the count.
    if (version === this.#counted && this.#first !== undefined) return;
    const isNext = this.#counted !== undefined && version === this.#counted + 1;
    this.#counted = version;
    const first = this.#first ?? (deliveredCount < groupsPerVersion ? version : version - 1);
    // The last step may have taken fewer groups.
    const mostSteps = Math.ceil((isNext ? trainableNextCount : trainableCount) / groupsPerVersion);
    this.#first = Math.max(first, version - mostSteps);
  }

  /** True if another group may start after `offeredCount` groups that the trainer takes or will take. */
  mayStart(offeredCount: number): boolean {
    const { max = 0, beyond, groupsPerVersion = 1 } = this.#options ?? {};
    if (beyond !== "wait") return true;
    const current = this.#currentHere ?? 0;
    const trained = current - (this.#first ?? current);
    return offeredCount < (trained + max + 1) * groupsPerVersion;
  }

  /** Returns the staleness of a group (see `EpisodeGroup.staleness`). */
  stalenessOf({ episodes }: Pick<EpisodeGroup, "episodes">): number | undefined {
    const { current } = this;
    if (current === undefined) return undefined;
    const { known, unknown } = versionsOf(episodes);
    if (known.size === 0 || unknown !== undefined) return undefined;
    return Math.max(current - Math.min(...known), 0);
  }

  /** Returns the reason for which a group is not delivered; `undefined` if it is. */
  reasonToDrop(group: EpisodeGroup): string | undefined {
    const { max = Infinity, beyond } = this.#options ?? {};
    const { staleness = 0 } = group;
    if (beyond !== "drop") return undefined;
    if (this.#isOfUnknownAge(group)) {
      if (this.current === undefined) return undefined;
      return `the age of its oldest token is unknown, and at most ${max} versions are allowed`;
    }
    if (staleness <= max) return undefined;
    return `its oldest token is ${staleness} versions old, and at most ${max} are allowed`;
  }

  /** Returns the group for delivery. With `mask`, tokens that are too old are removed from the loss. */
  mark(group: EpisodeGroup): EpisodeGroup {
    const { max = Infinity, beyond } = this.#options ?? {};
    const { staleness = 0 } = group;
    if (beyond !== "mask") return group;
    const { current } = this;
    if ((!this.#isOfUnknownAge(group) && staleness <= max) || current === undefined) return group;
    const oldest = current - max;
    return { ...group, episodes: group.episodes.map((episode) => maskBefore(episode, oldest)) };
  }

  /** True if the version of a trained token is unknown. Reports the first such group. */
  #isOfUnknownAge({ episodes, groupId, staleness }: EpisodeGroup): boolean {
    const unknown = staleness === undefined ? versionsOf(episodes).unknown : undefined;
    if (unknown === undefined) return false;
    const { beyond } = this.#options ?? {};
    const becomes = beyond === "drop" ? "such groups are left out" : "such tokens leave the loss";
    this.#tellOnce(
      `Cannot determine the age of the tokens of group ${groupId}, although staleness is bounded: the engine named ` +
        `${JSON.stringify(unknown)} as their version, expected a whole number, and none was announced before ` +
        `they were sampled; as soon as a version is known, ${becomes}: announce the first one with ` +
        "announcePolicy() when the run is started",
    );
    return true;
  }

  #tellOnce(problem: string): void {
    if (!this.#hasReported) this.#onProblem(problem);
    this.#hasReported = true;
  }
}

/**
 * Checks that a policy version can be announced.
 *
 * @throws UsageError if it is not a whole number.
 */
export function requireVersion(version: number): void {
  if (Number.isSafeInteger(version)) return;
  throw new UsageError(`Cannot announce the policy's version ${version}: expected a whole number`);
}
