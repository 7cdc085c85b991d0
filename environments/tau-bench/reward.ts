import { pythonLower } from "../../packages/python-values/src/text/lower.ts";
import { toPlainJson } from "../../packages/python-values/src/value.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import { lowerOf } from "./lower-of.ts";
import type { TauAction, TauTaskData } from "./tau-task.ts";
import { RESPOND_ACTION } from "./tau-task.ts";

/** τ-bench's `RewardResult`. JSON-able. */
export interface RewardInfo {
  readonly reward: number;
  /**
   * If the task asks for outputs, the result about them replaces the result about the database, as in the original.
   */
  readonly info:
    | { readonly r_actions: number; readonly gt_data_hash: string }
    | { readonly r_outputs: number; readonly outputs: Readonly<Record<string, boolean>> };
  /** The wanted actions except messages to the user. */
  readonly actions: readonly { readonly name: string; readonly kwargs: unknown }[];
}

/** The inputs of the reward. */
interface RewardInput {
  readonly task: TauTaskData;
  /** True if the database ended in the wanted state. */
  readonly isStateRight: boolean;
  /** The `content` of all messages to the user, in order; of any type. */
  readonly said: readonly PyValue[];
  /** The hash of the wanted state. */
  readonly wantedHash: () => Promise<string>;
}

/**
 * Computes τ-bench's reward: 1 if the database is as wanted and every output was said, else 0.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/base.py (`calculate_reward`).
 *
 * @throws PythonError if the original raises: for a `content` that is not a string, if the task has outputs.
 */
export async function computeReward({
  task,
  isStateRight,
  said,
  wantedHash,
}: RewardInput): Promise<RewardInfo> {
  const actions = task.actions
    .filter(({ name }) => name !== RESPOND_ACTION)
    .map(({ name, kwargs }) => ({ name, kwargs: toPlainJson(kwargs) }));
  if (task.outputs.length === 0) {
    const r_actions = isStateRight ? 1 : 0;
    return { reward: r_actions, info: { r_actions, gt_data_hash: await wantedHash() }, actions };
  }
  const unsaid = unsaidOutputs(task, said);
  const found = task.outputs.map((output) => [output, !unsaid.includes(output)] as const);
  const r_outputs = found.every(([, isFound]) => isFound) ? 1 : 0;
  return {
    reward: isStateRight ? r_outputs : 0,
    info: { r_outputs, outputs: Object.fromEntries(found) },
    actions,
  };
}

/**
 * Returns the wanted outputs that were not said.
 *
 * @throws PythonError like `computeReward()`.
 */
export function unsaidOutputs(task: TauTaskData, said: readonly PyValue[]): readonly string[] {
  // The original replays the wanted actions before it searches outputs, and so finds their words too.
  const words = [...said, ...task.actions.flatMap(wantedWords)];
  return task.outputs.filter((output) => !isSaid(output, words));
}

function wantedWords({ name, kwargs }: TauAction): PyValue[] {
  const content = name === RESPOND_ACTION ? kwargs.get("content") : undefined;
  return content === undefined ? [] : [content];
}

/** Commas are removed from the agent's words but not from the output: an output with a comma is never found. */
function isSaid(output: string, words: readonly PyValue[]): boolean {
  const wanted = pythonLower(output);
  return words.some((content) => lowerOf(content).replaceAll(",", "").includes(wanted));
}
