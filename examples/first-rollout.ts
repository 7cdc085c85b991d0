import { advantages, rewardsOf, rollout } from "turnwright";
import environment from "./library-desk.ts";

/** Returns the training rows of four attempts at each task, with their advantages. */
export async function firstRollout(url: string, model: string) {
  const rows = [];
  for await (const group of rollout({ environment, url, model, samples: 4 })) {
    const values = advantages(rewardsOf(group), "grpo");
    for (const [index, { samples }] of group.episodes.entries()) {
      rows.push(...samples.map((row) => ({ ...row, advantage: values[index] })));
    }
  }
  return rows;
}
