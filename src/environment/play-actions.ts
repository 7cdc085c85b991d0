import { UsageError } from "../errors.ts";
import type { Task } from "../task.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { User } from "../user/user.ts";
import type { Action, Environment, Score, Step } from "./environment.ts";

/** An episode that was played without a model. JSON-able. */
export interface PlayedActions {
  /** The user's first line. */
  readonly opening: string;
  /** `steps[i]` is the result of the i-th action. */
  readonly steps: readonly Step[];
  readonly score: Score;
}

/**
 * Plays the given actions in place of an agent, each as a turn, and scores the result. Use this function to try out and
 * to test an environment.
 *
 * @throws UsageError if actions follow the end of the episode.
 * @throws RolloutError if the user or the environment fails.
 */
export async function playActions<Data>(
  environment: Environment<Data>,
  {
    task,
    user,
    seed = 0,
    actions,
  }: {
    readonly task: Task<Data>;
    readonly user: User;
    /** The user's seed. Default 0. */
    readonly seed?: number;
    readonly actions: readonly Action[];
  },
  { signal }: { signal: AbortSignal },
): Promise<PlayedActions> {
  const session = user.open(task, { seed });
  await using world = await environment.open(task, { user: session, signal });
  const actionCounts = actions.map(() => 1);
  const calls = {
    begin: async () => await world.begin({ signal }),
    step: async (action: Action) => await world.step(action, { signal }),
    score: async () => await world.score({ signal, actionCounts }),
  };
  return await playInWorld(calls, actions);
}

/** The methods of a world that given actions need. */
export interface PlayedWorld {
  begin(): Promise<string>;
  step(action: Action): Promise<Step>;
  score(): Promise<Score>;
}

/**
 * Plays the given actions in an open world, and scores the result.
 *
 * @throws UsageError if actions follow the end of the episode.
 */
export async function playInWorld(
  world: PlayedWorld,
  actions: readonly Action[],
): Promise<PlayedActions> {
  const opening = await world.begin();
  const steps: Step[] = [];
  for (const [index, action] of actions.entries()) {
    if (steps.at(-1)?.done !== undefined) {
      throw new UsageError(describeLate("actions", index));
    }
    steps.push(await world.step(action));
  }
  return { opening, steps, score: await world.score() };
}

/** The results of replayed calls. JSON-able. */
export interface ReplayedCalls {
  /** `observations[i]` is the answer to the i-th call. */
  readonly observations: readonly string[];
  /** `stateHashes[i]` is the hash of the state after the i-th call. Absent if the world has no hashes. */
  readonly stateHashes?: readonly string[];
}

/**
 * Makes tool calls in a task's world, without a user and without a score.
 *
 * @throws UsageError if calls follow one that ends the episode.
 * @throws RolloutError if the environment fails.
 */
export async function replayCalls<Data>(
  environment: Environment<Data>,
  {
    task,
    calls,
  }: {
    readonly task: Task<Data>;
    readonly calls: readonly Extract<Action, { readonly type: "call" }>[];
  },
  { signal }: { signal: AbortSignal },
): Promise<ReplayedCalls> {
  const user = createScriptedUser({ lines: [""] }).open(task, { seed: 0 });
  await using world = await environment.open(task, { user, signal });
  await world.begin({ signal });
  const observations: string[] = [];
  const stateHashes: string[] = [];
  let isDone = false;
  for (const [index, call] of calls.entries()) {
    if (isDone) {
      throw new UsageError(describeLate("calls", index));
    }
    const { observation, done } = await world.step(call, { signal });
    isDone = done !== undefined;
    observations.push(observation);
    if (world.stateHash !== undefined) stateHashes.push(await world.stateHash({ signal }));
  }
  return world.stateHash === undefined ? { observations } : { observations, stateHashes };
}

/** Describes an action or a call that follows the end of its episode. */
function describeLate(list: "actions" | "calls", index: number): string {
  const [verb, noun] = list === "actions" ? ["play", "action"] : ["make", "call"];
  return (
    `Cannot ${verb} ${list}[${index}]: the episode was done after ${list}[${index - 1}], ` +
    `expected no ${noun} to follow`
  );
}
