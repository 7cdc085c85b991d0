import type { Episode } from "../../episode/episode.ts";

/** Counts episodes that fail in a row. */
export class FailureStreak {
  readonly #max: number;
  /** Ids of rollouts that an engine failed, and indexes of groups with other failures. */
  readonly #failed = new Set<string | number>();

  /** @param max - The number of failures at which the run stops; `Infinity` for never. */
  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Counts an episode. Engine failures count each, because an engine that is down fails every request. Other failures
   * count once a group, because they may be caused by its task.
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
