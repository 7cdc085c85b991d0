import type { Task } from "../task.ts";
import type { Episode } from "./episode.ts";

/**
 * Receives traces of episodes. Errors thrown here or by a trace do not affect the episode: the first one is reported as
 * a trouble (`internal/tracer`).
 */
export interface EpisodeTracer {
  /** Starts the trace of an episode. Returns `undefined` for an episode that is not traced. */
  readonly begin: (assignment: {
    readonly rolloutId: string;
    readonly task: Task;
  }) => EpisodeTrace | undefined;
}

/** The trace of one episode. */
export interface EpisodeTrace {
  /**
   * Called when a call to the environment or the user starts: `begin`, `step say`, `step TOOL` or `score`.
   *
   * @returns a function that is called when the call ends, with the thrown error if it failed.
   */
  readonly call: (name: string) => (error?: unknown) => void;
  /** Called when the episode ends. `episode` is `undefined` if the episode was stopped. */
  readonly end: (episode: Episode | undefined) => void;
}

/** Makes a call and reports it to the trace. */
export async function traced<Result>(
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
