import type { GenerateRequest } from "../../src/engine/engine.ts";
import { type DiscardedSampling, RolloutError } from "../../src/errors.ts";

/** A request for a turn of at most 16 ids after [1, 2, 3]; 2 stops it. */
export function toRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptIds: [1, 2, 3],
    sampling: {},
    maxNewTokens: 16,
    stopTokenIds: [2],
    requestId: "a",
    sessionId: "s",
    ...changes,
  };
}

/** The samples of a failed call, which are discarded. */
export async function discardedBy(call: Promise<unknown>): Promise<readonly DiscardedSampling[]> {
  const error = await call.catch((thrown: unknown) => thrown);
  if (error instanceof RolloutError) return error.discarded;
  throw new Error("Cannot continue: the call did not fail as an outage", { cause: error });
}

/** The part of a call's failure that callers may depend on. */
export async function failureOf(
  call: Promise<unknown>,
): Promise<{ code: string; retryable: boolean; message: string }> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    const { code, retryable, message } = error;
    return { code, retryable, message };
  }
  throw new Error("Cannot continue: the call succeeded, expected it to fail");
}
