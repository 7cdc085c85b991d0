import type { Message } from "../message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import {
  toPyValue,
  type PlainJson,
  type PyDict,
  type PyValue,
} from "../../packages/python-values/src/value.ts";
import type { EpisodeRow } from "../run/folder/run-folder.ts";
import { writeAtomically } from "../run/disk/write-atomically.ts";
import type { NumberedEpisode } from "./number-trials.ts";

/**
 * Returns the `user_id`, `actions`, `instruction` and `outputs` of a task for τ-bench's results.
 */
export type TaskInfo = (place: { readonly split: string; readonly taskIndex: number }) => PyValue;

/**
 * Writes episodes in the format of τ-bench's own results file: a list of `{task_id, reward, info,
 * traj, trial}`. As in τ-bench, an attempt that failed has the reward 0 and `info.error`, because
 * the format cannot express a missing score.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/types.py (`EnvRunResult`) and tau_bench/run.py.
 */
export async function writeTauBenchResults(
  file: string,
  episodes: AsyncIterable<NumberedEpisode>,
  taskInfo: TaskInfo | undefined,
): Promise<void> {
  await writeAtomically(file, linesOf(episodes, taskInfo));
}

async function* linesOf(
  episodes: AsyncIterable<NumberedEpisode>,
  taskInfo: TaskInfo | undefined,
): AsyncGenerator<Uint8Array> {
  let separator = "[\n";
  for await (const episode of episodes) {
    const text = stringifyPythonJson(toTauBenchResult(episode, taskInfo?.(episode.row)));
    yield Buffer.from(separator + text);
    separator = ",\n";
  }
  yield Buffer.from(separator === "[\n" ? "[]\n" : "\n]\n");
}

/** Returns one episode as an entry of τ-bench's results file. */
function toTauBenchResult({ row, trial }: NumberedEpisode, task: PyValue | undefined): PyDict {
  return new Map<string, PyValue>([
    ["task_id", BigInt(row.taskIndex)],
    // A number becomes a float: 1.0 rather than 1.
    ["reward", row.reward ?? 0],
    ["info", toInfo(row, task)],
    ["traj", row.messages.map(toOpenAiMessage)],
    ["trial", BigInt(trial)],
  ]);
}

function toInfo(row: EpisodeRow, task: PyValue | undefined): PyDict {
  if (row.reward === undefined) {
    const error = row.failure?.message ?? `not scored: ${row.stopReason}`;
    return new Map<string, PyValue>([
      ["error", error],
      ["traceback", ""],
      ["failure", row.failure?.code ?? null],
    ]);
  }
  return new Map<string, PyValue>([
    ...(task === undefined ? [] : [["task", task] as const]),
    ["source", row.turns.at(-1)?.steps.at(-1)?.source ?? null],
    ["user_cost", row.userUsage.costUsd ?? null],
    ["reward_info", toRewardInfo(row.rewardDetails ?? {})],
    ["stop_reason", row.stopReason],
  ]);
}

/** Returns the original's `RewardResult`, or `None` if the conversation did not end. */
function toRewardInfo(details: Readonly<Record<string, unknown>>): PyValue {
  const { reward, info, actions } = details;
  if (typeof reward !== "number" || typeof info !== "object" || info === null) return null;
  const members = Object.entries(info).map(
    ([name, value]) =>
      [name, typeof value === "number" ? value : toPyValue(value as PlainJson)] as const,
  );
  return new Map<string, PyValue>([
    ["reward", reward],
    ["info", new Map(members)],
    ["actions", toPyValue((actions ?? []) as PlainJson)],
  ]);
}

function toOpenAiMessage(message: Message): PyDict {
  const { role, content } = message;
  if (role === "tool") {
    return new Map<string, PyValue>([
      ["role", role],
      ["tool_call_id", message.toolCallId],
      ["name", message.name],
      ["content", content],
    ]);
  }
  const calls = role === "assistant" ? (message.toolCalls ?? []) : [];
  if (calls.length === 0) {
    return new Map<string, PyValue>([
      ["role", role],
      ["content", content],
    ]);
  }
  return new Map<string, PyValue>([
    ["role", role],
    ["content", content === "" ? null : content],
    [
      "tool_calls",
      calls.map(({ id, name, argumentsText }) =>
        toPyValue({ id, type: "function", function: { name, arguments: argumentsText } }),
      ),
    ],
  ]);
}
