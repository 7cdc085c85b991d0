import { componentsFault, turnRewardsFault } from "../../environment/reward-parts.ts";
import { whyNotJson } from "../../json/why-not-json.ts";
import { isReward } from "../../environment/is-reward.ts";
import type { TreeTurn } from "../../episode/episode.ts";
import { isObject } from "../../values/is-object.ts";

const members: ReadonlySet<string> = new Set(["reward", "details", "components", "turnRewards"]);

/** A fault of a session's reward, and the member that has it. */
interface RewardFault {
  readonly place: string;
  readonly why: string;
}

/**
 * Returns the first fault of a session's reward, or `undefined`.
 *
 * @param tree - The session's turns at its end. Absent before the end, when there can be no rewards of turns.
 */
export function rewardFault(
  reward: unknown,
  tree?: readonly Pick<TreeTurn, "turnIndex" | "rejected">[],
): RewardFault | undefined {
  if (!isObject(reward) || !isReward(reward["reward"])) {
    return { place: "reward", why: "it is not a number" };
  }
  const { details, components, turnRewards } = reward;
  const unwritten = whyNotJson(details);
  if (unwritten !== undefined) {
    return { place: "details", why: `its details cannot be written as JSON (${unwritten})` };
  }
  const fault =
    components === undefined ? undefined : componentsFault(components, reward["reward"]);
  if (fault !== undefined) return { place: "components", why: fault };
  const unknown = Object.keys(reward).find((name) => !members.has(name));
  if (unknown !== undefined) {
    const why = `it has ${unknown}, expected reward, components, turnRewards and details only`;
    return { place: unknown, why };
  }
  if (turnRewards === undefined) return undefined;
  const why =
    tree === undefined
      ? "it has turnRewards before the session's end: send them with /finish"
      : (turnRewardsFault(turnRewards, reward["reward"], tree.length) ??
        untrainedFault(turnRewards as readonly number[], tree));
  return why === undefined ? undefined : { place: "turnRewards", why };
}

/** Returns the first turn in no row that has a reward, or `undefined`. */
function untrainedFault(
  turnRewards: readonly number[],
  tree: readonly Pick<TreeTurn, "turnIndex" | "rejected">[],
): string | undefined {
  const wrong = tree.findIndex(
    ({ turnIndex }, index) => turnIndex === undefined && turnRewards[index] !== 0,
  );
  if (wrong < 0) return undefined;
  const { rejected } = tree[wrong]!;
  const about = rejected === undefined ? "" : ` (rejected: ${rejected})`;
  return `turnRewards[${wrong}] is ${turnRewards[wrong]}, and this turn is in no row${about}: expected 0`;
}
