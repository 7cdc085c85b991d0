import type { AttemptJob, OpenGroup } from "../schedule/open-group.ts";
import { isOfOtherAttempt, isOfOtherRun } from "../recording/recording-line.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import { forkOf, sharedPrefixOf, type SharedPrefix } from "./shared-prefix.ts";

/**
 * Tree sampling: all other attempts of a group branch from its first one. The shared turns are trained only in the row
 * of the first attempt.
 */
export class Branches {
  readonly #turnIndexes: readonly number[];
  readonly #folder: RunFolder | undefined;

  /** @param turnIndexes - The turns at which attempts 1, 2, … branch from attempt 0, used in rotation. */
  constructor(turnIndexes: readonly number[], folder: RunFolder | undefined) {
    this.#turnIndexes = turnIndexes;
    this.#folder = folder;
  }

  /** True if the attempts of a group branch from its first one. */
  get areAny(): boolean {
    return this.#turnIndexes.length > 0;
  }

  /** True if other attempts branch from this one. */
  areFrom({ assignment }: AttemptJob): boolean {
    return this.areAny && assignment.sampleIndex === 0;
  }

  /**
   * Returns the job with the turns that its attempt shares with the first one. The attempt plays from its first turn if
   * the first attempt has no reward (its turns are not trained) or no recording. An attempt that was interrupted after
   * it started without a branch is resumed without one.
   */
  async place(job: AttemptJob): Promise<AttemptJob> {
    const { assignment, group } = job;
    const { sampleIndex, seed } = assignment;
    if (!this.areAny || sampleIndex === 0 || job.fork !== undefined) return job;
    const prefix = group.sharedPrefix ?? (await this.#readSharedPrefix(group));
    if (prefix?.episode.reward === undefined) return job;
    const wanted = this.#turnIndexes[(sampleIndex - 1) % this.#turnIndexes.length]!;
    const fork = forkOf(prefix, wanted);
    if (fork === undefined || (await this.#startedWithoutBranch(job))) return job;
    const place = { seed: fork.seed, samplingSeed: seed, forkedFrom: fork.place };
    return { group, assignment: { ...assignment, ...place }, fork };
  }

  /** True if an earlier start started the attempt without a branch and did not finish it. */
  async #startedWithoutBranch({ assignment }: AttemptJob): Promise<boolean> {
    const recorded = await this.#folder?.recordings.read(assignment.rolloutId);
    if (recorded === undefined || recorded.hasEnded) return false;
    if (isOfOtherRun(recorded.begin, this.#folder?.manifest.runId)) return false;
    return recorded.begin.forkedFrom === undefined;
  }

  /** Reads a first attempt that an earlier start finished. */
  async #readSharedPrefix(group: OpenGroup): Promise<SharedPrefix | undefined> {
    const row = group.earlier.find(({ sampleIndex }) => sampleIndex === 0);
    if (row === undefined || this.#folder === undefined) return undefined;
    const [episode] = await this.#folder.readEpisodes(new Set([row.rolloutId]));
    const recorded = await this.#folder.recordings.read(row.rolloutId);
    if (episode === undefined || recorded === undefined) return undefined;
    if (isOfOtherRun(recorded.begin, this.#folder.manifest.runId)) return undefined;
    if (isOfOtherAttempt(recorded.begin, episode)) return undefined;
    group.sharedPrefix = sharedPrefixOf(episode, recorded.inputs);
    return group.sharedPrefix;
  }
}
