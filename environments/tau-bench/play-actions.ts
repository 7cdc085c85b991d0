import type { Score } from "../../src/environment/environment.ts";
import { UsageError } from "../../src/errors.ts";
import type { Task } from "../../src/task.ts";
import { createScriptedUser } from "../../src/user/scripted-user.ts";
import type { UserLine } from "../../src/user/user.ts";
import type { ReplayCall } from "./replay.ts";
import { readArguments } from "./replay.ts";
import type { TauEnvironment } from "./tau-environment.ts";
import type { TauTaskData } from "./tau-task.ts";

/** An episode to play without a model. */
export interface Play {
  readonly task: Task<TauTaskData>;
  /** The user's lines in order: the opening line first. */
  readonly userReplies: readonly UserLine[];
  /** The agent's actions; `respond` with `content` talks to the user. */
  readonly actions: readonly ReplayCall[];
}

/** The result of one step, like that of the original's `Env.step()`. JSON-able. */
export interface PlayedStep {
  readonly observation: string;
  /** 0 except for the step that ends the episode. */
  readonly reward: number;
  readonly done: boolean;
  /** `user`, or the action's name. */
  readonly source: string;
}

/** A played episode. JSON-able. */
export interface PlayedEpisode {
  readonly resetObservation: string;
  readonly steps: readonly PlayedStep[];
  readonly reward: number;
  /** `truncated` if the actions ended before the episode was done. */
  readonly outcome: "completed" | "truncated";
  /** τ-bench's reward_info; `null` if the episode was not done. */
  readonly rewardInfo: Score["details"] | null;
}

/**
 * Plays the given actions with a user who says the given lines.
 *
 * @throws UsageError if actions follow the end of the episode, or arguments cannot be read.
 * @throws RolloutError `user/script-exhausted` if the user has no line left.
 */
export async function playActions(
  environment: TauEnvironment,
  { task, userReplies, actions }: Play,
  { signal }: { signal: AbortSignal },
): Promise<PlayedEpisode> {
  const user = createScriptedUser({ lines: userReplies }).open(task, { seed: 0 });
  await using world = await environment.open(task, { user, signal });
  const resetObservation = await world.begin({ signal });
  const steps: PlayedStep[] = [];
  let score: Score | undefined;
  for (const [index, action] of actions.entries()) {
    if (score !== undefined) {
      throw new UsageError(
        `Cannot play actions[${index}]: the episode was done after actions[${index - 1}], ` +
          "expected no action to follow",
      );
    }
    const given = readArguments(action, `actions[${index}]`);
    const step = await world.step(
      { type: "call", name: action.name, arguments: given },
      { signal },
    );
    if (step.done !== undefined) score = await world.score({ signal });
    steps.push({
      observation: step.observation,
      reward: score?.reward ?? 0,
      done: score !== undefined,
      source: step.source,
    });
  }
  return {
    resetObservation,
    steps,
    reward: score?.reward ?? 0,
    outcome: score === undefined ? "truncated" : "completed",
    rewardInfo: score === undefined ? null : withoutDifference(score.details),
  };
}

/** The details that the original gives. */
function withoutDifference({ difference: _ours, ...details }: Score["details"]): Score["details"] {
  return details;
}
