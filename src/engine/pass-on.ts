import type { Engine } from "./engine.ts";

/** Copies an engine to a plain object with the same methods, of which a wrapper replaces some. */
export function passOn(engine: Engine): Engine {
  return {
    kind: engine.kind,
    generate: async (request, options) => await engine.generate(request, options),
    ...(engine.complete && { complete: async (...call) => await engine.complete!(...call) }),
    ...(engine.score && { score: async (...call) => await engine.score!(...call) }),
    ...(engine.scoreTop && { scoreTop: async (...call) => await engine.scoreTop!(...call) }),
    describe: async (options) => await engine.describe(options),
    ...(engine.load && { load: async (options) => await engine.load!(options) }),
    close: async () => await engine.close(),
  };
}
