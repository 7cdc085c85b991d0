import type { Difference } from "../../src/environment/state/difference.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import type { MadeCall } from "./call-difference.ts";
import { callDifference } from "./call-difference.ts";
import { unsaidOutputs } from "./reward.ts";
import { stateDifference } from "./state-difference.ts";
import type { Tables } from "./tau-domain.ts";
import type { TauTaskData } from "./tau-task.ts";
import { RESPOND_ACTION } from "./tau-task.ts";

/** An episode's results, and its task. */
interface EpisodeToCompare {
  readonly task: TauTaskData;
  readonly reached: Tables;
  readonly wanted: Tables;
  readonly made: readonly MadeCall[];
  /** The `content` of all messages to the user. */
  readonly said: readonly PyValue[];
  readonly terminatingTools: ReadonlySet<string>;
}

/** Returns the difference between the end of an episode and its task's wanted end. */
export function episodeDifference({
  task,
  reached,
  wanted,
  made,
  said,
  terminatingTools,
}: EpisodeToCompare): Difference {
  const wantedCalls = task.actions.filter(({ name }) => name !== RESPOND_ACTION);
  return {
    ...stateDifference(reached, wanted),
    ...callDifference({ wanted: wantedCalls, made, terminatingTools }),
    missingOutputs: unsaidOutputs(task, said),
  };
}
