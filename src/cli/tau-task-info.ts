import type { TauTaskData } from "../../environments/tau-bench/index.ts";
import type { Environment } from "../environment/environment.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import type { TaskInfo } from "../report/tau-bench-results.ts";
import type { Task } from "../task.ts";

/**
 * Returns the task information in τ-bench's results; for other environments, the task's instruction.
 */
export function tauTaskInfo(environment: Environment): TaskInfo {
  return ({ split, taskIndex }) => {
    const task = environment.task(split, taskIndex);
    if (!environment.name.startsWith("tau-")) return new Map([["instruction", task.instruction]]);
    const { userId, actions, outputs } = (task as Task<TauTaskData>).data;
    return new Map<string, PyValue>([
      ["user_id", userId],
      [
        "actions",
        actions.map(
          ({ name, kwargs }) =>
            new Map<string, PyValue>([
              ["name", name],
              ["kwargs", kwargs],
            ]),
        ),
      ],
      ["instruction", task.instruction],
      ["outputs", outputs],
    ]);
  };
}
