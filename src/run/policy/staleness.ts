import type { Episode } from "../../episode/episode.ts";
import { UsageError } from "../../errors.ts";
import type { EpisodeGroup } from "../schedule/group.ts";
import { readVersion } from "../disk/read-version.ts";

/**
 * How old the tokens of a group may be, and what becomes of those that are older. A token's version is the one that
 * the engine names, or where that is no whole number, the one that was announced before it was sampled. Where there
 * is neither, `drop` and `mask` take it for too old as soon as any version is known. Where none is announced, the newest
 * is the newest that has sampled an episode to its end.
 */
export interface StalenessOptions {
  /** Versions of the policy that may have come since a token was sampled. At least 0. */
  readonly max: number;
  /**
   * `drop`: groups with older tokens are not handed out. `mask`: their older tokens are taken out of the
   * loss. `mark`: they are handed out, and say how old they are. `wait`: no group is begun that would be
   * too old when its turn to be trained on comes; where nobody announces versions, it goes by those that sample,
   * and by what the engine says of itself while nothing does. One that is slow is handed out all the same, however
   * old it has become.
   */
  readonly beyond: "drop" | "mask" | "mark" | "wait";
  /** For `wait`: groups that the trainer takes for each version. */
  readonly groupsPerVersion?: number;
}

/** Groups of this start by now. */
interface GroupCounts {
  /** Those that were handed out. */
  readonly handedCount: number;
  /** Those that may have been trained on. Default: as many. */
  readonly trainableCount?: number;
  /** The same where no more than one step is counted. */
  readonly trainableNextCount?: number;
}

/**
 * Keeps account of the policy's versions and of how old what was sampled is.
 *
 * For `wait` it counts the trainer's steps of this start, from the first version that is known of it: the announced
 * one, or where none is, the one that samples or that the engine says of itself. What is known beside that is how many
 * groups were handed out by then, and a step takes some of them. So where there were enough for one before any version
 * was known, the trainer may have taken it: the first one comes behind another, which nobody named. And no more steps
 * are counted than there were groups for: a version that is further on than that, as where a trainer brings its
 * checkpoint to an engine that came up with other weights, was not trained on groups of this start.
 */
export class PolicyVersions {
  readonly #options: StalenessOptions | undefined;
  /** The one that the trainer's steps are counted from. */
  #first: number | undefined;
  /** The one up to which they were counted last. */
  #counted: number | undefined;
  /** The one that the trainer has announced last in this start. */
  #announced: number | undefined;
  /** The newest that sampled a token in this start, or that the engine has said of itself. */
  #seen: number | undefined;
  /** The newest that sampled a token of an episode that was played or read back, whichever start sampled it. */
  #recalled: number | undefined;

  readonly #onProblem: (problem: string) => void;
  #hasTold = false;

  /** @param onProblem - Told once where a bound cannot be held to as nobody knows a version. */
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
   * The version that samples, as far as is known: the newest that did where nobody says which; nothing where none
   * is known, or none is a whole number. A trainer that says which it has is taken at its word: tokens, also of an
   * earlier start, may be of weights that were lost since.
   */
  get current(): number | undefined {
    return this.#announced ?? newerOf(this.#seen, this.#recalled);
  }

  /** The version that samples, by what this start alone has shown: what the trainer took is counted from there. */
  get #currentHere(): number | undefined {
    return this.#announced ?? this.#seen;
  }

  /** Whether a group is to wait for versions, and none of this start is known. */
  get lacksFirst(): boolean {
    return this.#options?.beyond === "wait" && this.#first === undefined;
  }

  /** Whether it matters how old tokens are. */
  get isBounded(): boolean {
    return this.#options !== undefined;
  }

  /** The version that was announced last in this start; absent before the first. */
  get announced(): number | undefined {
    return this.#announced;
  }

  /**
   * Says that this version samples from now on.
   *
   * @param groups - As they were before.
   */
  announce(version: number, groups: GroupCounts): void {
    requireVersion(version);
    const current = this.#currentHere ?? version;
    if (version < current && this.#first !== undefined) {
      // Who goes back to older weights has taken what was trained on since then all the same,
      const stepCount = current - this.#first;
      this.#first = version - stepCount;
      // and what was handed out for another step is spent: he went back in its place.
      const { groupsPerVersion = 1 } = this.#options ?? {};
      const { handedCount, trainableCount = handedCount } = groups;
      if (Math.floor(trainableCount / groupsPerVersion) > stepCount) this.#first -= 1;
    }
    this.#countTo(version, groups);
    this.#announced = version;
  }

  /**
   * Takes note of the versions that sampled an episode. What comes from now on comes behind the newest of this start's
   * turns. The others are of an earlier start, and may be older, or newer where the engine went back to older weights.
   *
   * @param recordedCount - Its first turns, which were recorded before.
   * @param groups - As for `announce()`.
   */
  see(episode: Episode, recordedCount: number, groups: GroupCounts): void {
    this.recall([episode]);
    const newest = newestSince(recordedCount, episode);
    if (newest !== undefined) this.#note(newest, groups);
  }

  /** Takes note of the newest version that sampled episodes; nothing says that this start began with it. */
  recall(episodes: readonly Episode[]): void {
    this.#recalled = newerOf(this.#recalled, newestOf(episodes));
  }

  /**
   * Takes note of the version that the engine says it has, while groups wait for a newer one and nobody announces
   * any, or where a start hands out what earlier ones played.
   *
   * @param groups - As for `announce()`.
   */
  seeDescribed(name = "", groups: GroupCounts): void {
    const version = readVersion(name);
    if (version !== undefined) this.#note(version, groups);
    else if (this.#options?.beyond === "wait") {
      this.#tellOnce(
        "The run waits for the trainer and cannot tell how far it is: no version was announced, and the engine " +
          `describes its own as ${JSON.stringify(name)}, expected a whole number; announce each version, the ` +
          "first one with announcePolicy() when the run is started",
      );
    }
  }

  #note(version: number, groups: GroupCounts): void {
    this.#seen = Math.max(this.#seen ?? version, version);
    // Whoever announces is counted by that alone.
    if (this.#announced === undefined) this.#countTo(this.#seen, groups);
  }

  /** Counts the trainer's steps up to a version (see above), by the groups that there were before it was known. */
  #countTo(version: number, groups: GroupCounts): void {
    const { handedCount, trainableCount = handedCount } = groups;
    const { trainableNextCount = trainableCount } = groups;
    const { groupsPerVersion = 1 } = this.#options ?? {};
    // Told once more, it allows no less than it did.
    if (version === this.#counted && this.#first !== undefined) return;
    const isNext = this.#counted !== undefined && version === this.#counted + 1;
    this.#counted = version;
    const first = this.#first ?? (handedCount < groupsPerVersion ? version : version - 1);
    // The last step may have taken fewer.
    const mostSteps = Math.ceil((isNext ? trainableNextCount : trainableCount) / groupsPerVersion);
    this.#first = Math.max(first, version - mostSteps);
  }

  /** Whether another group may be begun where so many were, and are or will be the trainer's. */
  mayBegin(offeredCount: number): boolean {
    const { max = 0, beyond, groupsPerVersion = 1 } = this.#options ?? {};
    if (beyond !== "wait") return true;
    const current = this.#currentHere ?? 0;
    const trained = current - (this.#first ?? current);
    return offeredCount < (trained + max + 1) * groupsPerVersion;
  }

  /** See `EpisodeGroup.staleness`. */
  stalenessOf({ episodes }: Pick<EpisodeGroup, "episodes">): number | undefined {
    const { current } = this;
    if (current === undefined) return undefined;
    const { known, unknown } = versionsOf(episodes);
    if (known.size === 0 || unknown !== undefined) return undefined;
    return Math.max(current - Math.min(...known), 0);
  }

  /** Why a group is not handed out; nothing where it is. */
  reasonToDrop(group: EpisodeGroup): string | undefined {
    const { max = Infinity, beyond } = this.#options ?? {};
    const { staleness = 0 } = group;
    if (beyond !== "drop") return undefined;
    if (this.#isOfUnknownAge(group)) {
      if (this.current === undefined) return undefined;
      return `nobody knows how old its oldest token is, and at most ${max} versions are allowed`;
    }
    if (staleness <= max) return undefined;
    return `its oldest token is ${staleness} versions old, and at most ${max} are allowed`;
  }

  /** The group as it is handed out: without the loss on tokens that are too old, where that is asked for. */
  mark(group: EpisodeGroup): EpisodeGroup {
    const { max = Infinity, beyond } = this.#options ?? {};
    const { staleness = 0 } = group;
    if (beyond !== "mask") return group;
    const { current } = this;
    if ((!this.#isOfUnknownAge(group) && staleness <= max) || current === undefined) return group;
    const oldest = current - max;
    return { ...group, episodes: group.episodes.map((episode) => maskBefore(episode, oldest)) };
  }

  /** Whether nobody knows which version sampled a token that is to be trained on; the first such group is told of. */
  #isOfUnknownAge({ episodes, groupId, staleness }: EpisodeGroup): boolean {
    const unknown = staleness === undefined ? versionsOf(episodes).unknown : undefined;
    if (unknown === undefined) return false;
    const { beyond } = this.#options ?? {};
    const becomes = beyond === "drop" ? "such groups are left out" : "such tokens leave the loss";
    this.#tellOnce(
      `Cannot tell how old the tokens of group ${groupId} are, whose staleness is bounded: the engine named ` +
        `${JSON.stringify(unknown)} as their version, expected a whole number, and none was announced before ` +
        `they were sampled; as soon as a version is known, ${becomes}: announce the first one with ` +
        "announcePolicy() when the run is started",
    );
    return true;
  }

  #tellOnce(problem: string): void {
    if (!this.#hasTold) this.#onProblem(problem);
    this.#hasTold = true;
  }
}

/** @throws UsageError where a version of the policy cannot be announced. */
export function requireVersion(version: number): void {
  if (Number.isSafeInteger(version)) return;
  throw new UsageError(`Cannot announce the policy's version ${version}: expected a whole number`);
}

function newerOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

function newestOf(episodes: readonly Episode[]): number | undefined {
  const { known } = versionsOf(episodes);
  return known.size === 0 ? undefined : Math.max(...known);
}

/**
 * The newest version that sampled the end of a turn, from a place on. A turn that was cut short and went on has its
 * beginning of an earlier start.
 */
function newestSince(turnIndex: number, { segments }: Episode): number | undefined {
  const ends = segments.flatMap(({ turns, policyVersions }) =>
    turns.filter((turn) => turn.turnIndex >= turnIndex).map(({ end }) => policyVersions[end - 1]),
  );
  return ends.map((name = "") => readVersion(name)).reduce(newerOf, undefined);
}

/** Which versions sampled episodes. */
interface SampledVersions {
  readonly known: ReadonlySet<number>;
  /** How the engine named one that is no whole number, of tokens that are to be trained on. */
  readonly unknown: string | undefined;
}

function versionsOf(episodes: readonly Episode[]): SampledVersions {
  const known = new Set<number>();
  let unknown: string | undefined;
  for (const { lossMask, policyVersions } of episodes.flatMap(({ segments }) => segments)) {
    let last: string | undefined;
    let version: number | undefined;
    for (let index = 0; index < policyVersions.length; index++) {
      const name = policyVersions[index]!;
      // As a rule one version sampled a whole turn.
      if (name !== last) {
        version = readVersion(name);
        if (version !== undefined) known.add(version);
      }
      last = name;
      if (version === undefined && lossMask[index] === 1) unknown ??= name;
    }
  }
  return { known, unknown };
}

/** Takes the loss off what was sampled by an older version, or by one that nobody knows. */
function maskBefore(episode: Episode, oldest: number): Episode {
  const isOld = new Map<string, boolean>();
  const segments = episode.segments.map((segment) => ({
    ...segment,
    lossMask: segment.lossMask.map((bit, index) => {
      const name = segment.policyVersions[index]!;
      if (!isOld.has(name)) isOld.set(name, (readVersion(name) ?? -Infinity) < oldest);
      return isOld.get(name) === true ? 0 : bit;
    }),
  }));
  return { ...episode, segments };
}
