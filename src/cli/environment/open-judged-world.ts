import { systemClock } from "../../async/clock.ts";
import { JudgedWorld, type JudgedTerms } from "../../episode/judged-world.ts";
import { defaultLimits } from "../../episode/limits.ts";

/**
 * Opens a task's world for a command that plays it without a policy, with the time limits of a run.
 *
 * @throws RolloutError that names the responsible party.
 */
export async function openJudgedWorld(
  terms: Pick<JudgedTerms, "environment" | "task" | "user" | "seed" | "signal">,
): Promise<JudgedWorld> {
  return await JudgedWorld.open({
    ...terms,
    clock: systemClock,
    timeoutMs: defaultLimits.toolTimeoutMs,
    userTimeoutMs: defaultLimits.userTimeoutMs,
  });
}
