import { UsageError, describeError } from "../../errors.ts";

/**
 * Says the first words to a store.
 *
 * @param does - What that is for, such as `hand out by`.
 * @throws UsageError where the store takes nothing: whoever starts is told before anything is played.
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
