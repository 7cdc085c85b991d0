import { isPromise } from "node:util/types";
import { RolloutError, describeError } from "../errors.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import type { EpisodeTrace } from "./episode-tracer.ts";

/** Begins the trace of an episode by a tracer who may be anyone's; nothing that is called here throws. */
export function beginTrace(
  assignment: EpisodeAssignment,
  { tracer, onTrouble }: Pick<EpisodeSetup, "tracer" | "onTrouble">,
): EpisodeTrace | undefined {
  if (tracer === undefined) return undefined;
  let isTold = false;
  const tell = (error: unknown): void => {
    if (isTold) return;
    isTold = true;
    const message = `Cannot trace ${assignment.rolloutId}: ${describeError(error)}`;
    onTrouble?.(new RolloutError("internal/tracer", message, { cause: error }));
  };
  const quietly = <Result>(work: () => Result): Result | undefined => {
    try {
      const result = work();
      // Its type lets an async function be given in the place of one that answers at once.
      if (isPromise(result)) result.catch(tell);
      return result;
    } catch (error) {
      tell(error);
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
