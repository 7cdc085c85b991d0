import type { FinishedEpisode } from "../folder/episode-row.ts";
import type { AttemptCounts } from "./attempt-counts.ts";

type Attempt = Pick<FinishedEpisode, "reward">;

/** Decides when a group is complete: when `size` attempts are scored, or when all started attempts have ended. */
export class GroupCompletion {
  readonly #counts: AttemptCounts;

  constructor(counts: AttemptCounts) {
    this.#counts = counts;
  }

  isComplete(ended: readonly Attempt[]): boolean {
    const { size, started } = this.#counts;
    if (ended.length >= started) return true;
    return ended.filter(({ reward }) => reward !== undefined).length >= size;
  }

  /** Returns the attempts that completed the group. `ended` is in the order in which they ended. */
  firstComplete<Ended extends Attempt>(ended: readonly Ended[]): readonly Ended[] {
    const isComplete = (_: Ended, index: number): boolean =>
      this.isComplete(ended.slice(0, index + 1));
    const last = ended.findIndex(isComplete);
    return last < 0 ? ended : ended.slice(0, last + 1);
  }
}
