import { describeError, RolloutError } from "../../errors.ts";

/** What came of asking a tokenizer library that could not answer. */
export function tokenizerFailure(cause: unknown): RolloutError {
  const message = `Cannot use the tokenizer: ${describeError(cause)}`;
  return new RolloutError("internal/tokenizer", message, { cause });
}

/**
 * Asks a tokenizer library of others.
 *
 * @throws RolloutError `internal/tokenizer` with whatever it threw as the cause.
 */
export async function askLibrary<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (cause) {
    throw tokenizerFailure(cause);
  }
}
