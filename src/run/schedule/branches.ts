import type { AttemptJob, OpenGroup } from "./group-ledger.ts";
import { isOfOtherAttempt, isOfOtherRun } from "../recording/recording-line.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import { forkOf, sharedPrefixOf, type SharedPrefix } from "./shared-prefix.ts";

/**
 * Tree sampling: the other attempts of a group share the beginning of the first one. What is shared is
 * trained in the first one's row alone.
 */
export class Branches {
  readonly #places: readonly number[];
  readonly #folder: RunFolder | undefined;

  /** @param places - The turns with which attempts 1, 2, … part from attempt 0; taken in turn. */
  constructor(places: readonly number[], folder: RunFolder | undefined) {
    this.#places = places;
    this.#folder = folder;
  }

  /** Whether attempts wait for the first one of their group. */
  get areAny(): boolean {
    return this.#places.length > 0;
  }

  /** Whether others part from the attempt. */
  areFrom({ assignment }: AttemptJob): boolean {
    return this.areAny && assignment.sampleIndex === 0;
  }

  /**
   * The job with what its attempt parts from. It begins anew where nothing scored the first attempt, for its
   * turns are not trained then, and where its recording is lost; one that began anew goes on so, though the first
   * has been played again since.
   */
  async place(job: AttemptJob): Promise<AttemptJob> {
    const { assignment, group } = job;
    const { sampleIndex, seed } = assignment;
    if (!this.areAny || sampleIndex === 0 || job.fork !== undefined) return job;
    const trunk = group.trunk ?? (await this.#readTrunk(group));
    if (trunk?.episode.reward === undefined) return job;
    const wanted = this.#places[(sampleIndex - 1) % this.#places.length]!;
    const fork = forkOf(trunk, wanted);
    if (fork === undefined || (await this.#hasBegunAnew(job))) return job;
    const place = { seed: fork.seed, samplingSeed: seed, forkedFrom: fork.place };
    return { group, assignment: { ...assignment, ...place }, fork };
  }

  /** Whether an earlier start began the attempt without the first one, and was stopped in the middle of it. */
  async #hasBegunAnew({ assignment }: AttemptJob): Promise<boolean> {
    const recorded = await this.#folder?.recordings.read(assignment.rolloutId);
    if (recorded === undefined || recorded.hasEnded) return false;
    if (isOfOtherRun(recorded.begin, this.#folder?.manifest.runId)) return false;
    return recorded.begin.forkedFrom === undefined;
  }

  /** The first attempt as an earlier start left it. */
  async #readTrunk(group: OpenGroup): Promise<SharedPrefix | undefined> {
    const row = group.earlier.find(({ sampleIndex }) => sampleIndex === 0);
    if (row === undefined || this.#folder === undefined) return undefined;
    const [episode] = await this.#folder.readEpisodes(new Set([row.rolloutId]));
    const recorded = await this.#folder.recordings.read(row.rolloutId);
    if (episode === undefined || recorded === undefined) return undefined;
    if (isOfOtherRun(recorded.begin, this.#folder.manifest.runId)) return undefined;
    if (isOfOtherAttempt(recorded.begin, episode)) return undefined;
    group.trunk = sharedPrefixOf(episode, recorded.inputs);
    return group.trunk;
  }
}
