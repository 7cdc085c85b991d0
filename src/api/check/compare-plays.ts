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
 * @returns the first difference, or `undefined`.
 */
export function comparePlays(
  [first, second]: readonly [PlayedAgent, PlayedAgent],
  { environment, user }: { readonly environment: Environment; readonly user: User },
): PlayDifference | undefined {
  const line = firstDifference(first.lines, second.lines);
  if (line !== undefined) {
    const what = `the user (${user.strategy}) says other lines the second time`;
    const values = line.map((said) => said && textOfLine(said));
    const remedy = "draw with createSeededRandom(), and keep nothing outside of open()";
    return difference(user, what, { values, remedy });
  }
  if (first.opening !== second.opening) {
    return ofWorld(environment, "the conversation begins", [first.opening, second.opening]);
  }
  const step = firstDifference(first.steps, second.steps);
  if (step !== undefined) {
    const [one, other] = step;
    const { from = "tool", source = "" } = one ?? other ?? {};
    const what = from === "tool" ? `tool ${source} answers` : "the agent's text is answered";
    return ofWorld(environment, what, [one?.observation, other?.observation]);
  }
  const scores = firstDifference([first.score], [second.score]);
  return (
    scores && ofWorld(environment, "the episode is scored", [scores[0]?.reward, scores[1]?.reward])
  );
}

function ofWorld(
  environment: Environment,
  what: string,
  values: readonly unknown[],
): PlayDifference {
  const remedy =
    "draw with createSeededRandom(task.id), or take what comes from elsewhere through context.outside";
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
