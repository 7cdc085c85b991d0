import { isDeepStrictEqual } from "node:util";
import { RolloutError, UsageError } from "../../errors.ts";
import { readDecoderShape } from "./model/read-decoder-shape.ts";
import { createReferenceEngine, type ReferenceEngineOptions } from "./reference-engine.ts";
import type { ScoringEngine } from "./threaded-engine.ts";

/** An engine in this process, and the way to change its weights. */
export interface ReloadableEngine {
  /** Samples by the weights that were loaded last; what it says of itself stays. */
  readonly engine: ScoringEngine;
  /**
   * Loads the weights of another folder, of the same shape as those before, and forgets all that these
   * computed. Calls under way fail, so nobody should be sampling.
   *
   * @throws RolloutError `engine/bad-request` where the folder cannot be used, `engine/unreachable`
   *   where the engine is closed; the weights before stay.
   */
  readonly load: (modelDir: string) => Promise<void>;
}

/** The reference engine for policies that are trained. Throws as `createReferenceEngine()` does. */
export async function createReloadableEngine(
  options: ReferenceEngineOptions,
): Promise<ReloadableEngine> {
  const shape = await readDecoderShape(options.modelDir);
  let current = await createReferenceEngine(options);
  const description = await current.describe();

  async function start(modelDir: string): Promise<ScoringEngine> {
    if (!isDeepStrictEqual(await readDecoderShape(modelDir), shape)) {
      throw new UsageError(
        `Cannot load ${modelDir}: its config.json describes another model than ${options.modelDir}, ` +
          "expected other weights of the same one",
      );
    }
    return await createReferenceEngine({ ...options, modelDir });
  }

  return {
    engine: {
      kind: current.kind,
      generate: async (...call) => await current.generate(...call),
      score: async (...call) => await current.score(...call),
      async describe(asked) {
        await current.describe(asked);
        return description;
      },
      load: async (asked) => await current.load!(asked),
      close: async () => await current.close(),
    },
    async load(modelDir) {
      const before = current;
      const next = await start(modelDir).catch((cause: unknown) => {
        if (!(cause instanceof UsageError)) throw cause;
        throw new RolloutError("engine/bad-request", cause.message, { cause });
      });
      try {
        // It may have been closed, now or meanwhile.
        await before.describe();
      } catch (error) {
        await next.close();
        throw error;
      }
      current = next;
      await before.close();
    },
  };
}
