import type { Engine } from "../../engine/engine.ts";
import { passOn } from "../../engine/pass-on.ts";

/**
 * Wraps an engine so that each answer is checked against the worker's lease before it is used. A
 * process that was suspended receives answers and clock events in any order. In the meantime, the
 * hand-out may have stopped waiting for this worker and changed the policy's weights.
 * @param watch - Stops the running attempts if the lease has expired.
 */
export function watchEngineLease(engine: Engine, watch: () => void): Engine {
  return {
    ...passOn(engine),
    generate: async (request, options) => {
      const generation = await engine.generate(request, options);
      watch();
      options?.signal?.throwIfAborted();
      return generation;
    },
  };
}
