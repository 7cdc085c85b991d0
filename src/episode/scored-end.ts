import type { Score } from "../environment/environment.ts";
import type { RolloutEnd } from "../trajectory/sample.ts";
import type { Episode } from "./episode.ts";

/** Returns the end of an episode with its score. An episode without a score ends as `unscored`, without a reward. */
export function scoredEnd<End extends Pick<RolloutEnd, "outcome" | "stopReason">>(
  end: End,
  { reward, details }: Score,
): End & Pick<Episode, "stopReason" | "rewardDetails"> & { readonly reward?: number } {
  return reward === null
    ? { ...end, stopReason: "unscored", rewardDetails: details }
    : { ...end, reward, rewardDetails: details };
}
