import type { Episode } from "../../episode/episode.ts";

/** Counts episodes that fail in a row. */
export class FailureStreak {
  readonly #max: number;
  /** The failures in a row: the ids of rollouts for engine failures, and the indexes of groups for other failures. */
  readonly #failed = new Set<string | number>();

  /** @param max - The number of failures at which the run stops; `Infinity` for never. */
  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Counts an episode. Each engine failure counts, because an engine that is down fails every request. Other failures
   * count once a group, because the group's task may cause them.
   *
   * @returns true when the run should stop.
   */
  add(groupIndex: number, { failure, outcome, rolloutId }: Episode): boolean {
    if (this.#max === Infinity) return false;
    if (outcome !== "failed") this.#failed.clear();
    else this.#failed.add(failure?.party === "engine" ? rolloutId : groupIndex);
    return this.#failed.size >= this.#max;
  }
}
