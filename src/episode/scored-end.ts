import type { Score } from "../environment/environment.ts";
import type { RolloutEnd } from "../trajectory/sample.ts";
import type { Episode } from "./episode.ts";

/** The fields of an episode that its score fills, beside the reward. */
export type ScoreFields = Pick<
  Episode,
  "rewardDetails" | "rewardComponents" | "turnRewards" | "success"
>;

/** Returns the end of an episode with its score. An episode without a score ends as `unscored`, without a reward. */
export function scoredEnd<End extends Pick<RolloutEnd, "outcome" | "stopReason">>(
  end: End,
  { reward, details, components, turnRewards, success }: Score,
): End & Pick<Episode, "stopReason"> & ScoreFields & { readonly reward?: number } {
  if (reward === null) return { ...end, stopReason: "unscored", rewardDetails: details };
  return {
    ...end,
    reward,
    rewardDetails: details,
    ...(components !== undefined && { rewardComponents: components }),
    ...(turnRewards !== undefined && { turnRewards }),
    ...(success !== undefined && { success }),
  };
}
