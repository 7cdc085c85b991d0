import { withResolvers } from "../../async/with-resolvers.ts";
import { UsageError } from "../../errors.ts";
import { sourcedFault } from "./sourced-fault.ts";
import type { SourcedTask, TaskSource } from "./task-source.ts";

/** A source to which a program pushes tasks. */
export interface PushedTasks extends TaskSource {
  /**
   * Adds tasks to the end of the queue.
   *
   * @throws UsageError, and adds no task, if a task cannot be played, if its group's id was pushed before, or after
   *   `end()`.
   */
  push(...tasks: readonly SourcedTask[]): void;
  /** Ends the source after the tasks that were pushed. */
  end(): void;
  /** The number of tasks that were pushed and not taken yet. */
  readonly waitingCount: number;
}

/**
 * Returns a source to which a program pushes tasks, and for which a run waits. If several runs share it, each task goes
 * to one of them.
 */
export function createPushedTasks(): PushedTasks {
  const waiting: SourcedTask[] = [];
  const knownIds = new Set<string>();
  /** Waiting calls, which are woken by `push()` and `end()`. */
  const asking = new Set<() => void>();
  const state = { hasEnded: false };
  const wakeAll = (): void => {
    for (const wake of asking) wake();
  };
  const untilWoken = async (signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = withResolvers();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    asking.add(resolve);
    try {
      await promise;
    } finally {
      asking.delete(resolve);
      signal.removeEventListener("abort", onAbort);
    }
  };
  return {
    push(...tasks) {
      const ids = new Set<string>();
      for (const [place, sourced] of tasks.entries()) {
        const fault = sourcedFault(sourced);
        if (fault !== undefined) throw new UsageError(`Cannot push task ${place}: ${fault}`);
        const { task, groupId = task.id } = sourced;
        if (state.hasEnded) {
          throw new UsageError(
            `Cannot push ${groupId}: end() was called, and the run that takes the tasks may have ended; call end() ` +
              "after the last push(), or start another run with a source of its own",
          );
        }
        if (knownIds.has(groupId) || ids.has(groupId)) {
          throw new UsageError(
            `Cannot push ${groupId}: it was pushed before; give a task that is to be played again a \`groupId\` of ` +
              "its own",
          );
        }
        ids.add(groupId);
      }
      for (const groupId of ids) knownIds.add(groupId);
      for (const sourced of tasks) waiting.push(sourced);
      wakeAll();
    },
    end() {
      state.hasEnded = true;
      wakeAll();
    },
    get waitingCount() {
      return waiting.length;
    },
    async at(_groupIndex, { signal }) {
      while (waiting.length === 0 && !state.hasEnded) {
        signal.throwIfAborted();
        await untilWoken(signal);
      }
      return waiting.shift();
    },
  };
}
