import { RolloutError, describeError } from "../errors.ts";
import type { ComparedMembers } from "./compared-members.ts";
import { classOf } from "./content-text.ts";
import type { Difference } from "./state/difference.ts";
import type { Score } from "./environment.ts";
import { isObject } from "../values/is-object.ts";
import {
  describeComponent,
  describePart,
  isComponent,
  weightedSum,
  type RewardComponent,
} from "./reward-parts.ts";
import { briefText } from "./brief-value.ts";
import { isReward } from "./is-reward.ts";
import { NotPlain, writePlainJson } from "./plain-text.ts";
import { findDifferences } from "./state/state-difference.ts";

/** The result of `score()`: a reward, a verdict, or a detailed score. */
export type ScoreResult<State> = number | boolean | DetailedScore<State>;

/** A score with the wanted result, which `turnwright show` compares with the actual one. */
export interface DetailedScore<State> {
  /**
   * The reward. Default: the sum of `components` or `turnRewards`; without them 1 if the state is as wanted
   * and the agent said all outputs, otherwise 0.
   */
  readonly reward?: number | boolean;
  /** The wanted final state: only the members that matter. */
  readonly wanted?: Partial<State>;
  /** Texts that the agent must have said in its messages. Letter case and thousands commas are ignored. */
  readonly outputs?: readonly string[];
  /** Further details. JSON-able. */
  readonly details?: Readonly<Record<string, unknown>>;
  /**
   * The named parts of the reward, each a value with its weight. A number has the weight 1. The reward is the
   * sum of the values, each times its weight.
   */
  readonly components?: Readonly<Record<string, number | RewardComponent>>;
  /** The part of the reward that each turn of the agent earned, in order. Their sum is the reward. */
  readonly turnRewards?: readonly number[];
  /** True if the attempt reached its goal; evaluations count it. Default: it did if the reward is 1. */
  readonly success?: boolean;
}

/** The members of a detailed score. */
const members = new Set([
  "reward",
  "wanted",
  "outputs",
  "details",
  "components",
  "turnRewards",
  "success",
]);

/** The episode to score. */
interface ScoredEpisode {
  readonly taskId: string;
  /** The environment's name and file. */
  readonly environment: string;
  readonly state: unknown;
  readonly said: readonly string[];
  /** Gets the members that `wanted` names, if there is one. */
  readonly onCompared?: ((compared: ComparedMembers) => void) | undefined;
}

/**
 * Converts the result of `score()` to a score with its difference.
 * @throws RolloutError `grader/bad-score` naming the environment, the task and the field.
 */
export function toScore(result: unknown, episode: ScoredEpisode): Score {
  const bad = (what: string): RolloutError =>
    new RolloutError(
      "grader/bad-score",
      `Cannot use the result of score() of ${episode.environment} for task ${episode.taskId}: ${what}, ` +
        "expected a finite number, true or false, or an object with reward, components or wanted",
    );
  if (typeof result !== "object" || result === null) {
    return { reward: toReward(result, "it", bad), details: {} };
  }
  if (result instanceof Promise) throw bad("it is a promise of a promise");
  const { reward, wanted, outputs, details = {} } = result as DetailedScore<object>;
  const parts = toParts(result, bad);
  const { success } = result as DetailedScore<object>;
  const unknown = Object.keys(result).find((key) => !members.has(key));
  if (unknown !== undefined)
    throw bad(`"${unknown}" is not one of its members (other data goes into details)`);
  const summed =
    parts.components === undefined ? sumOf(parts.turnRewards) : weightedSum(parts.components);
  if (
    reward === undefined &&
    summed === undefined &&
    wanted === undefined &&
    outputs === undefined
  ) {
    throw bad("it has none of reward, components and wanted");
  }
  if (wanted !== undefined && (typeof wanted !== "object" || wanted === null)) {
    throw bad("wanted is not an object");
  }
  if (wanted !== undefined && Object.keys(wanted).length === 0 && classOf(wanted) !== "Object") {
    throw bad(`wanted is a ${classOf(wanted)} without own members to compare`);
  }
  if (outputs !== undefined && !(Array.isArray(outputs) && outputs.every(isText))) {
    throw bad("outputs is not a list of texts");
  }
  if (success !== undefined && typeof success !== "boolean") {
    throw bad(`success is ${describePart(success)}, not true or false`);
  }
  if (wanted !== undefined) episode.onCompared?.(membersOf(wanted, episode.state));
  const difference = differenceOf({ wanted, outputs }, episode, bad);
  const isRight = difference.state.length === 0 && difference.missingOutputs.length === 0;
  const isKnown = wanted !== undefined || outputs !== undefined;
  const given = reward === undefined ? undefined : toReward(reward, "reward", bad);
  return {
    reward: given ?? summed ?? Number(isRight),
    ...parts,
    ...(success !== undefined && { success }),
    details: { ...toDetails(details, bad), ...(isKnown && { difference }) },
  };
}

/** A getter of the state's class counts as a member if it is wanted. */
function membersOf(wanted: object, state: unknown): ComparedMembers {
  const names = Object.keys(wanted);
  if (typeof state !== "object" || state === null) return { wanted: names, state: [] };
  const inherited = names.filter((name) => name in state);
  return { wanted: names, state: [...new Set([...Object.keys(state), ...inherited])] };
}

/** Returns the parts of a reward with their weights. Their sums are checked with every score. */
function toParts(
  { components, turnRewards }: DetailedScore<object>,
  bad: (what: string) => RolloutError,
): Pick<Score, "components" | "turnRewards"> {
  if (components !== undefined && !isObject(components)) throw bad("components is not an object");
  if (turnRewards !== undefined && !Array.isArray(turnRewards)) {
    throw bad("turnRewards is not a list");
  }
  const weighed = Object.entries(components ?? {}).map(([name, component]) => {
    const whole = typeof component === "number" ? { value: component, weight: 1 } : component;
    if (!isComponent(whole))
      throw bad(`components.${briefText(name)} is ${describeComponent(component)}`);
    return [name, whole] as const;
  });
  const wrong = turnRewards?.findIndex((one) => !isReward(one)) ?? -1;
  if (wrong >= 0) throw bad(`turnRewards[${wrong}] is ${describePart(turnRewards![wrong])}`);
  return {
    ...(components !== undefined && { components: Object.fromEntries(weighed) }),
    ...(turnRewards !== undefined && { turnRewards }),
  };
}

function sumOf(turnRewards: readonly number[] | undefined): number | undefined {
  return turnRewards?.reduce((sum, reward) => sum + reward, 0);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function toReward(value: unknown, name: string, bad: (what: string) => RolloutError): number {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (value === undefined) throw bad(`${name} is nothing (a forgotten return?)`);
  if (typeof value === "bigint") throw bad(`${name} is ${value}n (Number(…) makes it one)`);
  const shown = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value);
  throw bad(`${name} is ${briefText(shown)}`);
}

function differenceOf(
  {
    wanted,
    outputs = [],
  }: { readonly wanted: object | undefined; readonly outputs: readonly string[] | undefined },
  { state, said }: ScoredEpisode,
  bad: (what: string) => RolloutError,
): Difference {
  const reached = typeof state === "object" && state !== null ? state : {};
  const spoken = said.map(toComparable);
  try {
    const found =
      wanted === undefined ? { state: [], moreState: 0 } : findDifferences(wanted, reached);
    return {
      state: found.state,
      ...(found.moreState !== 0 && { moreState: found.moreState }),
      missingCalls: [],
      extraCalls: [],
      missingOutputs: outputs.filter(
        (one) => !spoken.some((text) => text.includes(toComparable(one))),
      ),
    };
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error;
    throw bad(`wanted cannot be compared: ${error.message}`);
  }
}

function toComparable(text: string): string {
  return text.toLowerCase().replaceAll(/(?<=\d),(?=\d{3})/g, "");
}

/** Converts details to JSON-able values; integers may have any size. */
function toDetails(
  details: unknown,
  bad: (what: string) => RolloutError,
): Readonly<Record<string, unknown>> {
  if (typeof details !== "object" || details === null || Array.isArray(details)) {
    throw bad("details is not an object");
  }
  try {
    return JSON.parse(writePlainJson(details)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error;
    throw bad(`details cannot be written: ${describeError(error)}`);
  }
}
