import { UsageError, describeError } from "../../errors.ts";

/**
 * Makes the first call to a store.
 * @param does - The purpose of the call, for the error message, such as `hand out by`.
 * @throws UsageError if the store refuses the call, so that the user gets the error before any
 *   attempt is played.
 */
export async function beginWith<Result>(
  does: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `Cannot ${does} the queue's store, which takes nothing now: ${describeError(error)}; start again when ` +
        "it does",
      { cause: error },
    );
  }
}
