import { isWellFormed } from "../text/well-formed.ts";
import { isObject } from "../values/is-object.ts";
import { briefText } from "./brief-value.ts";
import { isReward } from "./is-reward.ts";

/** A named part of a reward. JSON-able. */
export interface RewardComponent {
  readonly value: number;
  readonly weight: number;
}

/** The parts of a reward by name. The reward is the sum of their values, each times its weight. JSON-able. */
export type RewardComponents = Readonly<Record<string, RewardComponent>>;

/** The largest error of a sum, relative to one plus the sizes of all terms. Rewards are often stored in 32 bits. */
const tolerance = 1e-6;

/** Returns the sum of the components' values, each times its weight. */
export function weightedSum(components: RewardComponents): number {
  return Object.values(components).reduce((sum, { value, weight }) => sum + value * weight, 0);
}

/** True if the value, the weight and their product are numbers that trainers can store. See `isReward()`. */
export function isComponent(component: unknown): component is RewardComponent {
  const { value, weight } = isObject(component) ? component : {};
  return isReward(value) && isReward(weight) && isReward(value * weight);
}

/** Names by which trainers and reports mean the whole reward. */
const wholeNames: ReadonlySet<string> = new Set(["reward", "total"]);

/** Returns the reason that a component cannot have this name, or `undefined`. */
function nameFault(name: string): string | undefined {
  const shown = briefText(JSON.stringify(name));
  if (name.trim() === "") return `components has the name ${shown}, expected one that is not empty`;
  if (/\p{Cc}|\u2028|\u2029/u.test(name)) {
    return `components has the name ${shown}, expected one line without control characters`;
  }
  if (!isWellFormed(name)) {
    return `components has the name ${shown}, expected text without halves of surrogate pairs`;
  }
  return wholeNames.has(name)
    ? `components has the name ${shown}, which means the whole reward: choose another one`
    : undefined;
}

/** Describes a wrong component in a message. */
export function describeComponent(component: unknown): string {
  if (!isObject(component)) return describePart(component);
  const { value, weight } = component;
  return `{ value: ${describePart(value)}, weight: ${describePart(weight)} }`;
}

/** Describes a wrong part of a reward in a message. */
export function describePart(part: unknown): string {
  if (typeof part === "string") return briefText(JSON.stringify(part));
  if (typeof part === "bigint") return `${part}n`;
  return typeof part === "object" && part !== null ? "an object" : String(part);
}

/**
 * Checks the components of a reward.
 * @returns a description of the first fault, or `undefined`.
 */
export function componentsFault(components: unknown, reward: unknown): string | undefined {
  if (!isObject(components)) return "components is not an object";
  const entries = Object.entries(components);
  if (entries.length === 0) return "components is empty, expected at least one";
  for (const [name, component] of entries) {
    const fault = nameFault(name);
    if (fault !== undefined) return fault;
    if (!isComponent(component)) {
      return `components.${briefText(name)} is ${describeComponent(component)}, expected a value, a weight and a product of both that are finite in 32 bits`;
    }
  }
  const terms = (Object.values(components) as RewardComponent[]).map(
    ({ value, weight }) => value * weight,
  );
  return sumFault("components", terms, reward);
}

/**
 * Checks the rewards of an episode's turns.
 *
 * @param turnCount - The number of turns. Absent if it is not known.
 * @returns a description of the first fault, or `undefined`.
 */
export function turnRewardsFault(
  turnRewards: unknown,
  reward: unknown,
  turnCount?: number,
): string | undefined {
  if (!Array.isArray(turnRewards)) return "turnRewards is not a list";
  const wrong = turnRewards.findIndex((one) => !isReward(one));
  if (wrong >= 0) {
    return `turnRewards[${wrong}] is ${describePart(turnRewards[wrong])}, expected a number that is finite in 32 bits`;
  }
  if (turnCount !== undefined && turnRewards.length !== turnCount) {
    return `turnRewards has ${turnRewards.length} entries, expected one for each of the ${turnCount} turns`;
  }
  return sumFault("turnRewards", turnRewards as number[], reward);
}

function sumFault(name: string, terms: readonly number[], reward: unknown): string | undefined {
  if (typeof reward !== "number") return `${name} is there without a reward`;
  const sum = terms.reduce((total, term) => total + term, 0);
  const scale = terms.reduce((total, term) => total + Math.abs(term), 1);
  if (Number.isFinite(scale) && Math.abs(sum - reward) <= tolerance * scale) return undefined;
  return `${name} adds up to ${sum}, and the reward is ${reward}`;
}
