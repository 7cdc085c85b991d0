import { isPromise } from "node:util/types";
import { RolloutError, describeError } from "../errors.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import type { EpisodeTrace } from "./episode-tracer.ts";

/** Starts the trace of an episode. Never throws: the first error of the tracer is reported as a trouble. */
export function beginTrace(
  assignment: EpisodeAssignment,
  { tracer, onTrouble }: Pick<EpisodeSetup, "tracer" | "onTrouble">,
): EpisodeTrace | undefined {
  if (tracer === undefined) return undefined;
  let isReported = false;
  const report = (error: unknown): void => {
    if (isReported) return;
    isReported = true;
    const message = `Cannot trace ${assignment.rolloutId}: ${describeError(error)}`;
    onTrouble?.(new RolloutError("internal/tracer", message, { cause: error }));
  };
  const quietly = <Result>(work: () => Result): Result | undefined => {
    try {
      const result = work();
      // TypeScript accepts an async function here.
      if (isPromise(result)) result.catch(report);
      return result;
    } catch (error) {
      report(error);
      return undefined;
    }
  };
  const trace = quietly(() => tracer.begin(assignment));
  if (trace === undefined) return undefined;
  return {
    call: (name) => {
      const end = quietly(() => trace.call(name));
      return (...thrown) => quietly(() => end?.(...thrown));
    },
    end: (episode) => quietly(() => trace.end(episode)),
  };
}
