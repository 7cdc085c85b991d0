import type { FinishedEpisode } from "../folder/episode-row.ts";

/** The ids of all rollouts that were started, and whether each finished, failed or has not ended. */
export class RolloutRegister {
  /**
   * The id of attempt `i % started` of group `floor(i / started)` at index `i`; `undefined` if the attempt was not
   * started. The list reaches to the last group with a started attempt, because a source may have no last group.
   */
  readonly ids: (string | undefined)[] = [];
  readonly #started: number;
  readonly #known = new Set<string>();
  readonly #failed = new Set<string>();
  readonly #done = new Set<string>();

  /** @param started - The number of attempts that are started at each task. */
  constructor(started: number) {
    this.#started = started;
  }

  has(rolloutId: string): boolean {
    return this.#known.has(rolloutId);
  }

  add(groupIndex: number, sampleIndex: number, rolloutId: string): void {
    this.#known.add(rolloutId);
    const groupEnd = (groupIndex + 1) * this.#started;
    if (this.ids.length < groupEnd) this.ids.length = groupEnd;
    this.ids[groupIndex * this.#started + sampleIndex] = rolloutId;
  }

  addEnd({ rolloutId, outcome }: Pick<FinishedEpisode, "rolloutId" | "outcome">): void {
    if (outcome === "failed") this.#failed.add(rolloutId);
    else this.#done.add(rolloutId);
  }

  /** Returns how a rollout ended; `undefined` if it did not end. */
  howEnded(rolloutId: string): "failed" | "other" | undefined {
    if (this.#failed.has(rolloutId)) return "failed";
    return this.#done.has(rolloutId) ? "other" : undefined;
  }
}
