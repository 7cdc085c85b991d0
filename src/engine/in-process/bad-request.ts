import { RolloutError } from "../../errors.ts";

/** Creates the error of a request that the engine cannot sample. */
export function badRequest(problem: string, expected: string): RolloutError {
  return new RolloutError("engine/bad-request", `Cannot sample: ${problem}, expected ${expected}`);
}
