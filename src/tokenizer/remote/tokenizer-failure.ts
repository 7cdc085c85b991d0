import { describeError, RolloutError } from "../../errors.ts";

/** Returns the error of a tokenizer library that failed. */
export function tokenizerFailure(cause: unknown): RolloutError {
  const message = `Cannot use the tokenizer: ${describeError(cause)}`;
  return new RolloutError("internal/tokenizer", message, { cause });
}

/**
 * Calls a tokenizer library.
 *
 * @throws RolloutError `internal/tokenizer` with the library's error as its cause.
 */
export async function callLibrary<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (cause) {
    throw tokenizerFailure(cause);
  }
}
