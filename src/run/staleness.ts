import type { Episode } from "../episode/episode.ts";
import { UsageError } from "../errors.ts";
import type { EpisodeGroup } from "./group.ts";

/** How old the tokens of a group may be, and what becomes of those that are older. */
export interface StalenessOptions {
  /** Versions of the policy that may have come since a token was sampled. At least 0. */
  readonly max: number;
  /**
   * `drop`: groups with older tokens are not handed out. `mask`: their older tokens are taken out of the
   * loss. `mark`: they are handed out, and say how old they are. `wait`: no group is begun that would be
   * too old when its turn to be trained on comes.
   */
  readonly beyond: "drop" | "mask" | "mark" | "wait";
  /** For `wait`: groups that the trainer takes for each version. */
  readonly groupsPerVersion?: number;
}

/** Keeps account of the policy's versions and of how old what was sampled is. */
export class PolicyVersions {
  readonly #options: StalenessOptions | undefined;
  /** The one that sampled when this start began. */
  #first: number | undefined;
  /** The one that the trainer has announced last in this start. */
  #announced: number | undefined;
  /** The newest that sampled a token. */
  #seen: number | undefined;

  constructor(options: StalenessOptions | undefined) {
    this.#options = options;
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
   * The version that samples, as far as is known: the newest that did where nobody says which; nothing where none
   * is known, or none is a whole number. A trainer that says which it has is taken at its word: tokens, also of an
   * earlier start, may be of weights that were lost since.
   */
  get current(): number | undefined {
    return this.#announced ?? this.#seen;
  }

  /**
   * Says that this version samples from now on.
   *
   * @param handedCount - Groups that were handed out before: what is announced first comes behind another
   *   version, which nobody named, where these are enough to train on.
   */
  announce(version: number, handedCount = 0): void {
    requireVersion(version);
    const { groupsPerVersion = 1 } = this.#options ?? {};
    const { current = version } = this;
    this.#first ??= handedCount < groupsPerVersion ? version : version - 1;
    // Who goes back to older weights has taken what was trained on since then all the same.
    if (version < current) this.#first -= current - version;
    this.#announced = version;
  }

  /** Takes note of the versions that sampled an episode. */
  see(episode: Episode): void {
    for (const version of versionsOf(episode)) this.#note(version);
  }

  #note(version: number): void {
    this.#first ??= version;
    this.#seen = Math.max(this.#seen ?? version, version);
  }

  /**
   * Takes note of the newest version that sampled groups of earlier starts: what is announced from now on
   * comes behind it.
   */
  seeEarlier(episodes: readonly Episode[]): void {
    const versions = episodes.flatMap((episode) => versionsOf(episode));
    if (versions.length > 0) this.#note(Math.max(...versions));
  }

  /** Whether another group may be begun where so many were, and are or will be the trainer's. */
  mayBegin(offeredCount: number): boolean {
    const { max = 0, beyond, groupsPerVersion = 1 } = this.#options ?? {};
    if (beyond !== "wait") return true;
    const { current = 0 } = this;
    const trained = current - (this.#first ?? current);
    return offeredCount < (trained + max + 1) * groupsPerVersion;
  }

  /** See `EpisodeGroup.staleness`. */
  stalenessOf({ episodes }: Pick<EpisodeGroup, "episodes">): number | undefined {
    const { current } = this;
    if (current === undefined) return undefined;
    const versions = episodes.flatMap((episode) => versionsOf(episode));
    return versions.length === 0 ? undefined : Math.max(current - Math.min(...versions), 0);
  }

  /** Why a group is not handed out; nothing where it is. */
  reasonToDrop({ staleness }: EpisodeGroup): string | undefined {
    const { max = Infinity, beyond } = this.#options ?? {};
    if (beyond !== "drop" || staleness === undefined || staleness <= max) return undefined;
    return `its oldest token is ${staleness} versions old, and at most ${max} are allowed`;
  }

  /** The group as it is handed out: without the loss on tokens that are too old, where that is asked for. */
  mark(group: EpisodeGroup): EpisodeGroup {
    const { max = Infinity, beyond } = this.#options ?? {};
    const { staleness } = group;
    if (beyond !== "mask" || staleness === undefined || staleness <= max) return group;
    const oldest = (this.current ?? 0) - max;
    return { ...group, episodes: group.episodes.map((episode) => maskBefore(episode, oldest)) };
  }
}

/** @throws UsageError where a version of the policy cannot be announced. */
export function requireVersion(version: number): void {
  if (Number.isSafeInteger(version)) return;
  throw new UsageError(`Cannot announce the policy's version ${version}: expected a whole number`);
}

function versionsOf({ segments }: Episode): readonly number[] {
  const named = new Set<string>();
  for (const { policyVersions } of segments) {
    let last: string | undefined;
    for (const version of policyVersions) {
      // As a rule one version sampled a whole turn.
      if (version !== last) named.add(version);
      last = version;
    }
  }
  named.delete("");
  return [...named].map(Number).filter((version) => Number.isSafeInteger(version));
}

function maskBefore(episode: Episode, oldest: number): Episode {
  const segments = episode.segments.map((segment) => ({
    ...segment,
    lossMask: segment.lossMask.map((bit, index) => {
      const version = segment.policyVersions[index];
      return bit === 1 && version !== "" && Number(version) < oldest ? 0 : bit;
    }),
  }));
  return { ...episode, segments };
}
