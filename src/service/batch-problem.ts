import { UsageError } from "../errors.ts";
import { codeOf } from "../run/disk/files.ts";
import type { RunPlan } from "../run/schedule/plan-run.ts";
import { ServiceError } from "./service-error.ts";

/**
 * A problem of one batch. All other batches continue. The batch was playable when it was accepted,
 * so a start with the earlier parts can play it.
 */
export class BatchProblem extends Error {
  override readonly name = "BatchProblem";

  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** The plan of a batch. Its tasks were there when it was accepted: a start that has not got them is another one's. */
export function planAccepted(plan: () => RunPlan): RunPlan {
  try {
    return plan();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new BatchProblem(error);
  }
}

/** Calls a function that draws tasks. An error becomes the batch's problem. */
export function drawing<Result>(draw: () => Result): Result {
  try {
    return draw();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new BatchProblem(error);
  }
}

/**
 * Awaits work in a batch's folder. A folder that does not match, for example because of other
 * settings, is the batch's problem; a failing disk is the service's.
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
 * Returns the batch's own problem from a thrown error, or `undefined` if the error concerns more
 * than the batch.
 */
export function batchProblemIn(thrown: unknown): BatchProblem | undefined {
  // A task source wraps such a problem in an error of its own.
  const cause = thrown instanceof UsageError ? thrown.cause : undefined;
  return [thrown, cause].find((error) => error instanceof BatchProblem);
}
