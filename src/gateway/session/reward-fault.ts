import { componentsFault } from "../../environment/reward-parts.ts";
import { whyNotJson } from "../../json/why-not-json.ts";
import { isReward } from "../../trajectory/reward.ts";
import { isObject } from "../../values/is-object.ts";

const members: ReadonlySet<string> = new Set(["reward", "details", "components"]);

/** Returns the first fault of a session's reward and the member that has it, or `undefined`. */
export function rewardFault(
  reward: unknown,
): { readonly place: string; readonly why: string } | undefined {
  if (!isObject(reward) || !isReward(reward["reward"])) {
    return { place: "reward", why: "it is not a number" };
  }
  const { details, components } = reward;
  const unwritten = whyNotJson(details);
  if (unwritten !== undefined) {
    return { place: "details", why: `its details cannot be written as JSON (${unwritten})` };
  }
  const fault =
    components === undefined ? undefined : componentsFault(components, reward["reward"]);
  if (fault !== undefined) return { place: "components", why: fault };
  const unknown = Object.keys(reward).find((name) => !members.has(name));
  return unknown === undefined
    ? undefined
    : { place: unknown, why: `it has ${unknown}, expected reward, components and details only` };
}
