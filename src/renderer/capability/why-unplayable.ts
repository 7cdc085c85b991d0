import type { CapabilityCard } from "./capability-card.ts";

/**
 * Returns the reason why no agent can play with a chat template: it cannot render the answers that every agent
 * gets. `undefined` if agents can play; an agent that calls tools needs more.
 */
export function whyUnplayable({
  stopLiterals,
  supports,
}: Pick<CapabilityCard, "stopLiterals" | "supports">): string | undefined {
  if (stopLiterals.length === 0) return "no control token ends a turn of the assistant";
  return supports.user ? undefined : "it does not render user messages after a turn as it should";
}
