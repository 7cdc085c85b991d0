import type { Engine } from "../../engine/engine.ts";

/**
 * An engine whose tokens carry the version that was announced, where there is one to mark them with.
 *
 * @param version - Asked when a call begins: it cannot change before the call has ended.
 */
export function markVersions(engine: Engine, version: () => number | undefined): Engine {
  return {
    kind: engine.kind,
    describe: async (options) => await engine.describe(options),
    close: async () => await engine.close(),
    ...(engine.score && { score: async (...call) => await engine.score!(...call) }),
    ...(engine.load && { load: async (options) => await engine.load!(options) }),
    generate: async (request, options) => {
      const announced = version();
      const generation = await engine.generate(request, options);
      if (announced === undefined) return generation;
      const policyVersion = String(announced);
      const pieces = generation.pieces.map((piece) => ({ ...piece, policyVersion }));
      return { ...generation, pieces };
    },
  };
}
