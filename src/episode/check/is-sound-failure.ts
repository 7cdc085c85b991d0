import { RolloutError } from "../../errors.ts";
import { whyNotJson } from "../../json/why-not-json.ts";
import { checkEnd } from "../../trajectory/check-end.ts";

/** True if the error is a failure that can be written as it is. Foreign code may throw failures with any content. */
export function isSoundFailure(error: unknown): error is RolloutError {
  try {
    if (!(error instanceof RolloutError)) return false;
    const failure = error.toFailure();
    const isSound = checkEnd({ outcome: "failed", stopReason: "failure", failure }).length === 0;
    return isSound && whyNotJson(failure) === undefined;
  } catch {
    return false;
  }
}
