import { isObject } from "../values/is-object.ts";
import { parties } from "../errors.ts";
import { componentsFault, turnRewardsFault } from "../environment/reward-parts.ts";
import { isReward } from "../environment/is-reward.ts";
import { stopReasons, type Outcome } from "./sample.ts";
import { quote, type RawRow, type Violation } from "./violation.ts";

/**
 * Checks the end of a training row or an episode: known outcome and stop reason that fit together, a reward if it was
 * scored, and a failure with its party and no reward if it failed.
 */
export function checkEnd(row: RawRow): Violation[] {
  return [
    ...checkOutcome(row),
    ...checkReward(row),
    ...checkRewardParts(row),
    ...checkFailure(row),
  ];
}

/** Checks the parts of an episode's reward. Rows have none. */
function checkRewardParts({ reward, rewardComponents, turnRewards, turns }: RawRow): Violation[] {
  const turnCount = Array.isArray(turns) ? turns.length : undefined;
  const faults = [
    rewardComponents === undefined ? undefined : componentsFault(rewardComponents, reward),
    turnRewards === undefined ? undefined : turnRewardsFault(turnRewards, reward, turnCount),
  ];
  return faults.flatMap((detail) => (detail === undefined ? [] : [{ rule: "reward", detail }]));
}

function checkOutcome({ outcome, stopReason }: RawRow): Violation[] {
  if (!isOutcome(outcome)) return [{ rule: "outcome", detail: `outcome is ${quote(outcome)}` }];
  const known: readonly unknown[] = stopReasons[outcome];
  if (known.includes(stopReason)) return [];
  const detail = `stopReason is ${quote(stopReason)}, expected with ${outcome}: ${known.join(", ")}`;
  return [{ rule: "stop-reason", detail }];
}

function checkReward({ outcome, stopReason, reward }: RawRow): Violation[] {
  const isUnscored =
    outcome === "failed" ||
    outcome === "aborted" ||
    stopReason === "deadline" ||
    stopReason === "unscored";
  if (reward === undefined) {
    return isUnscored || !isOutcome(outcome)
      ? []
      : [{ rule: "reward", detail: `outcome is ${outcome} and there is no reward, expected one` }];
  }
  if (!isReward(reward)) {
    const wanted = typeof reward === "number" ? "a number that is finite in 32 bits" : "a number";
    const detail = `reward is ${quote(reward)}, expected ${wanted}, or no such field`;
    return [{ rule: "reward", detail }];
  }
  return isUnscored
    ? [{ rule: "reward", detail: "an episode that nothing scored has a reward, expected none" }]
    : [];
}

function checkFailure({ outcome, failure }: RawRow): Violation[] {
  if (outcome !== "failed") {
    return failure === undefined
      ? []
      : [{ rule: "failure", detail: `outcome is ${quote(outcome)} and there is a failure` }];
  }
  if (failure === undefined) {
    return [{ rule: "failure", detail: "a failed episode has no failure" }];
  }
  const fault = failureFault(failure);
  return fault === undefined ? [] : [{ rule: "failure", detail: fault }];
}

/** Returns the reason why a value is not a valid failure, or `undefined` if it is. */
export function failureFault(failure: unknown): string | undefined {
  if (!isObject(failure)) return `the failure is ${quote(failure)}, expected an object`;
  const { party, code, message } = failure;
  const isKnown = (parties as readonly unknown[]).includes(party);
  if (isKnown && typeof code === "string" && code.startsWith(`${party as string}/`)) {
    return typeof message === "string" ? undefined : "the failure has no message";
  }
  const said = `the failure is of party ${quote(party)} with code ${quote(code)}`;
  return `${said}, expected a known party and a code of its own`;
}

function isOutcome(value: unknown): value is Outcome {
  return typeof value === "string" && Object.hasOwn(stopReasons, value);
}
