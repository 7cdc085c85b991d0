import type { Environment } from "../../environment/environment.ts";
import { describe } from "../../episode/check/foreign-value.ts";
import type { User } from "../../user/user.ts";
import { textOfLine } from "../../user/user.ts";
import type { PlayedAgent } from "./play-agent.ts";
import type { EnvironmentProblem } from "./problem-list.ts";

/** A difference between two plays of the same agent with the same seed. */
export interface PlayDifference extends Pick<EnvironmentProblem, "severity" | "message"> {
  /** The part that differs, the same for all values. */
  readonly kind: string;
}

/**
 * Compares two plays of the same agent in the same task with the same seed. A difference is an error if the environment
 * or the user says that it is repeatable: resumed episodes would fail.
 *
 * @returns the first difference in the user's lines, and the first one in the world's answers.
 */
export function comparePlays(
  [first, second]: readonly [PlayedAgent, PlayedAgent],
  { environment, user }: { readonly environment: Environment; readonly user: User },
): readonly PlayDifference[] {
  const line = firstDifference(first.lines, second.lines);
  const ofUser = line && [
    difference(user, `the user (${user.strategy}) says other lines the second time`, {
      values: line.map((said) => said && textOfLine(said)),
      remedy: `${drawing}, and keep nothing outside of the conversation`,
    }),
  ];
  const ofSteps = stepDifference(first, second, environment);
  if (ofSteps !== undefined) return [...(ofUser ?? []), ofSteps];
  // Other lines may lead to another score.
  if (ofUser !== undefined) return ofUser;
  if (first.opening !== second.opening) {
    return [ofWorld(environment, "the conversation begins", [first.opening, second.opening])];
  }
  const scores = firstDifference([first.score], [second.score]);
  const rewards = scores?.map((score) => score?.reward);
  return rewards === undefined ? [] : [ofWorld(environment, "the episode is scored", rewards)];
}

/** Returns the first difference in the steps in which the user says nothing else. */
function stepDifference(
  first: PlayedAgent,
  second: PlayedAgent,
  environment: Environment,
): PlayDifference | undefined {
  const step = firstDifference(first.steps, second.steps);
  if (step === undefined) return undefined;
  const [one, other] = step;
  const { from = "tool", source = "" } = one ?? other ?? {};
  const isOfUser = from === "user" && JSON.stringify(first.lines) !== JSON.stringify(second.lines);
  if (isOfUser) return undefined;
  const what = from === "tool" ? `tool ${source} answers` : "the agent's text is answered";
  return ofWorld(environment, what, [one?.observation, other?.observation]);
}

const drawing = "draw from the seed (createSeededRandom(), in Python context.random)";

function ofWorld(
  environment: Environment,
  what: string,
  values: readonly unknown[],
): PlayDifference {
  const remedy = `${drawing}, or take what comes from elsewhere through context.outside`;
  return difference(environment, `${what} differently the second time`, { values, remedy });
}

function difference(
  { repeatable = false }: Pick<Environment | User, "repeatable">,
  what: string,
  { values, remedy }: { readonly values: readonly unknown[]; readonly remedy: string },
): PlayDifference {
  const shown = new Set(values.map((value) => describe(value)));
  const found = shown.size > 1 ? ` (${[...shown].join(", then ")})` : "";
  const promise = repeatable ? "it says that it is repeatable; " : "";
  return {
    severity: repeatable ? "error" : "warning",
    kind: what,
    message: `${what}${found}, expected the same for the same task, seed and actions (${promise}${remedy})`,
  };
}

/** Returns the first pair of items that differ as JSON. */
function firstDifference<Item>(
  one: readonly Item[],
  other: readonly Item[],
): readonly [Item | undefined, Item | undefined] | undefined {
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const pair = [one[index], other[index]] as const;
    if (JSON.stringify(pair[0]) !== JSON.stringify(pair[1])) return pair;
  }
  return undefined;
}
