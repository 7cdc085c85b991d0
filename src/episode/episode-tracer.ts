import type { Task } from "../task.ts";
import type { Episode } from "./episode.ts";

/**
 * Told when episodes begin, for traces; gives nothing for an episode that nobody traces. Whatever is thrown here
 * or by a trace costs an episode nothing: the first of it is told as a trouble (`internal/tracer`).
 */
export interface EpisodeTracer {
  readonly begin: (assignment: {
    readonly rolloutId: string;
    readonly task: Task;
  }) => EpisodeTrace | undefined;
}

/** Told what an episode does. */
export interface EpisodeTrace {
  /**
   * A call to the environment or the user is made: `begin`, `step say`, `step TOOL` or `score`.
   *
   * @returns what is told that it has ended, with what was thrown where something was.
   */
  readonly call: (name: string) => (error?: unknown) => void;
  /** It has ended; without an episode where it was stopped. */
  readonly end: (episode: Episode | undefined) => void;
}

/** Makes a call under the eyes of the trace, where there is one. */
export function traced<Result>(
  trace: EpisodeTrace | undefined,
  name: string,
  work: () => Promise<Result>,
): Promise<Result> {
  return trace === undefined ? work() : tracedBy(trace, name, work);
}

async function tracedBy<Result>(
  trace: EpisodeTrace,
  name: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const end = trace.call(name);
  try {
    const result = await work();
    end();
    return result;
  } catch (error) {
    end(error);
    throw error;
  }
}
