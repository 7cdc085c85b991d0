import type { EpisodeRow } from "../run/folder/run-folder.ts";
import { boundsOf, estimateMean, type Estimate } from "./statistics/interval.ts";
import { mean } from "../values/sum.ts";

/** A named component of the rewards in a report. JSON-able. */
export interface ComponentEvaluation {
  /** The mean over tasks of the mean over each task's attempts, of the value without its weight. */
  readonly mean: Estimate;
  /** The number of scored attempts with the component. */
  readonly attemptCount: number;
  /** The weight of the value in the reward. Absent if attempts have different weights. */
  readonly weight?: number;
}

interface Known {
  /** The values by task id. */
  readonly values: Map<string, number[]>;
  readonly weights: Set<number>;
}

/** Sums up the components of rewards. */
export class ComponentTally {
  readonly #known = new Map<string, Known>();

  /** Adds a scored attempt. */
  add({ taskId, rewardComponents = {} }: Pick<EpisodeRow, "taskId" | "rewardComponents">): void {
    for (const [name, { value, weight }] of Object.entries(rewardComponents)) {
      const known: Known = this.#known.get(name) ?? { values: new Map(), weights: new Set() };
      this.#known.set(name, known);
      const own = known.values.get(taskId);
      if (own === undefined) known.values.set(taskId, [value]);
      else own.push(value);
      known.weights.add(weight);
    }
  }

  /** Returns the components by name. `undefined` if no attempt has any. */
  evaluation(): Readonly<Record<string, ComponentEvaluation>> | undefined {
    if (this.#known.size === 0) return undefined;
    return Object.fromEntries(
      Array.from(this.#known, ([name, { values, weights }]) => {
        const lists = [...values.values()];
        const all = lists.flat();
        const means = lists.map(mean);
        const [weight] = weights;
        const component = {
          mean: estimateMean(means, boundsOf(all))!,
          attemptCount: all.length,
          ...(weights.size === 1 && { weight: weight! }),
        };
        return [name, component];
      }),
    );
  }
}
