import { crossBriefly, type Boundary } from "../boundary.ts";
import { checkUsage } from "../check/check-foreign.ts";
import type { User, UserSession, UserUsage } from "../../user/user.ts";
import type { EpisodeLimits } from "../limits.ts";
import type { CallWatch } from "./call-watch.ts";

/** The user that reports its cost, and the time limit of the request. */
interface UsageTerms {
  readonly setup: { readonly user: User; readonly limits: Pick<EpisodeLimits, "userTimeoutMs"> };
  readonly watch: CallWatch;
}

/**
 * Returns the cost of the user.
 *
 * @throws RolloutError if the user does not report it.
 */
export async function askUsage(
  { setup, watch }: UsageTerms,
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
