import type { Engine } from "../../engine/engine.ts";

/**
 * An engine of which each answer is held against the worker's lease before anybody sees it. A process that stood
 * still hears of answers and of its clock at once, in any order: the policy's weights may have changed meanwhile,
 * as nobody waited for this worker any more.
 *
 * @param watch - Stops what is played where the lease is over.
 */
export function watchEngineLease(engine: Engine, watch: () => void): Engine {
  return {
    kind: engine.kind,
    generate: async (request, options) => {
      const generation = await engine.generate(request, options);
      watch();
      options?.signal?.throwIfAborted();
      return generation;
    },
    ...(engine.score && { score: async (...call) => await engine.score!(...call) }),
    describe: async (options) => await engine.describe(options),
    ...(engine.load && { load: async (options) => await engine.load!(options) }),
    close: async () => await engine.close(),
  };
}
