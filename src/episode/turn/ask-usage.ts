import type { UserSession, UserUsage } from "../../user/user.ts";
import { crossBriefly, type Boundary } from "../boundary.ts";
import { checkUsage } from "../check/check-foreign.ts";
import type { Play } from "../play.ts";

/**
 * Returns the cost of the user.
 *
 * @throws RolloutError if the user does not report it.
 */
export async function askUsage(
  { setup, watch }: Pick<Play, "setup" | "watch">,
  user: UserSession,
): Promise<UserUsage> {
  const boundary = (): Boundary => ({
    party: "user",
    what: "ask what the user cost",
    timeoutMs: setup.limits.userTimeoutMs,
  });
  const said = await crossBriefly(watch, boundary, () => user.usage());
  return await crossBriefly(watch, boundary, () => checkUsage(said, setup.user));
}
