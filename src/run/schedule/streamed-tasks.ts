import type { Task } from "../../task.ts";
import type { SourcedTask, TaskSource } from "./task-source.ts";

/**
 * Returns a source that takes tasks from an iterable. Calls are answered in their order. A task that arrives after its
 * caller has stopped waiting goes to the next call.
 */
export function createTaskStream(tasks: Iterable<Task> | AsyncIterable<Task>): TaskSource {
  const iterator =
    Symbol.asyncIterator in tasks ? tasks[Symbol.asyncIterator]() : tasks[Symbol.iterator]();
  /** Waiting calls in order. */
  const waiting: ((drawn: Promise<SourcedTask | undefined>) => void)[] = [];
  /** Tasks that arrived when no call waited any more. */
  const kept: Promise<SourcedTask | undefined>[] = [];
  let drawingCount = 0;
  const next = async (): Promise<SourcedTask | undefined> => {
    const { done, value } = await iterator.next();
    return done === true ? undefined : { task: value };
  };
  const draw = async (): Promise<void> => {
    drawingCount += 1;
    const drawn = next();
    const isLast = await drawn.then(
      (sourced) => sourced === undefined,
      () => false,
    );
    drawingCount -= 1;
    const give = waiting.shift();
    if (give !== undefined) give(drawn);
    // The end is not kept: a later call finds it again.
    else if (!isLast) kept.push(drawn);
  };
  return {
    async at(_groupIndex, { givenUp }: { readonly givenUp?: AbortSignal } = {}) {
      const next = kept.shift();
      if (next !== undefined) return await next;
      return await new Promise<SourcedTask | undefined>((resolve) => {
        const leave = (): void => void waiting.splice(waiting.indexOf(give), 1);
        const give = (drawn: Promise<SourcedTask | undefined>): void => {
          givenUp?.removeEventListener("abort", leave);
          resolve(drawn);
        };
        waiting.push(give);
        givenUp?.addEventListener("abort", leave, { once: true });
        if (waiting.length > drawingCount) void draw();
      });
    },
  };
}
