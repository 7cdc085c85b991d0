import { UsageError } from "../errors.ts";
import { codeOf } from "../run/disk/files.ts";
import type { RunPlan } from "../run/schedule/plan-run.ts";
import { ServiceError } from "./service-error.ts";

/**
 * What keeps a batch from being played, by which all others are played on. It could be played when it was accepted,
 * so it is played by a start that finds what was there then.
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

/** What drawing tasks of a batch gives; one that cannot be drawn any more is that batch's problem. */
export function drawing<Result>(draw: () => Result): Result {
  try {
    return draw();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new BatchProblem(error);
  }
}

/**
 * What looking into a batch's folder gives: what does not fit there, such as other settings, is that batch's
 * problem, and what the disk refuses is the service's.
 */
export async function lookingInto<Result>(look: Promise<Result>): Promise<Result> {
  try {
    return await look;
  } catch (error) {
    if (!(error instanceof UsageError) || codeOf(error.cause) !== undefined) throw error;
    throw new BatchProblem(error);
  }
}

/** The batch's own problem in what was thrown; `undefined` where it is more than that. */
export function batchProblemIn(thrown: unknown): BatchProblem | undefined {
  // Whoever asks a source for tasks says so in an error of its own.
  const cause = thrown instanceof UsageError ? thrown.cause : undefined;
  return [thrown, cause].find((error) => error instanceof BatchProblem);
}
