import { UsageError } from "../errors.ts";
import { codeOf } from "../run/disk/files.ts";
import type { RunPlan } from "../run/schedule/plan-run.ts";
import { ServiceError } from "./service-error.ts";

/**
 * A problem of one batch. All other batches continue. The batch could be played when it was accepted. So it can be
 * played by a start of the service that has the environment and settings of that time.
 */
export class BatchProblem extends Error {
  override readonly name = "BatchProblem";

  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/**
 * Plans an accepted batch. Its tasks existed when it was accepted, so an error means that this
 * start has another environment.
 */
export function planAccepted(plan: () => RunPlan): RunPlan {
  try {
    return plan();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new BatchProblem(error);
  }
}

/** Calls a function that makes tasks. Converts its error to the batch's problem. */
export function drawing<Result>(draw: () => Result): Result {
  try {
    return draw();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new BatchProblem(error);
  }
}

/**
 * Awaits work in a batch's folder. Converts a mismatch of the folder, for example because of other
 * settings, to the batch's problem. A disk error passes unchanged.
 */
export async function lookingInto<Result>(look: Promise<Result>): Promise<Result> {
  try {
    return await look;
  } catch (error) {
    if (!(error instanceof UsageError) || codeOf(error.cause) !== undefined) throw error;
    throw new BatchProblem(error);
  }
}

/**
 * Returns the batch's own problem from a thrown error. Returns `undefined` if the error concerns
 * the complete service.
 */
export function batchProblemIn(thrown: unknown): BatchProblem | undefined {
  // A task source wraps such a problem in an error of its own.
  const cause = thrown instanceof UsageError ? thrown.cause : undefined;
  return [thrown, cause].find((error) => error instanceof BatchProblem);
}
