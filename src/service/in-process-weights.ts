import path from "node:path";
import type { ReloadableEngine } from "../engine/reference/index.ts";
import { findWeightsProblem } from "../engine/http/weights-folder.ts";
import { describeError, RolloutError, UsageError } from "../errors.ts";
import type { WeightControl } from "./policy-weights.ts";

/**
 * Changes the weights of an engine in this process. If the new weights fail to load, the engine keeps the earlier ones.
 */
export function inProcessWeights(engine: Pick<ReloadableEngine, "loadWeights">): WeightControl {
  return {
    findProblem: async ({ path: folder }) => await findWeightsProblem(path.resolve(folder)),
    async load({ path: folder, version }) {
      try {
        await engine.loadWeights(folder, version);
      } catch (cause) {
        if (cause instanceof UsageError) {
          throw new RolloutError("engine/server-error", cause.message, { cause });
        }
        if (!isOfTheDisk(cause)) throw cause;
        const message = `Cannot load the model in ${folder}: ${describeError(cause)}`;
        throw new RolloutError("engine/server-error", message, { cause });
      }
    },
    have: () => Promise.resolve(false),
  };
}

/**
 * True if reading a file failed because of the disk, for example its permissions or a missing
 * network share.
 */
function isOfTheDisk(cause: unknown): boolean {
  return cause instanceof Error && "syscall" in cause;
}
