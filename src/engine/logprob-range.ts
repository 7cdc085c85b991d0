/**
 * Between which bounds a sampled token's logprob is believed, both included, in nats. Rounding may lift
 * the logarithm of a probability of 1 a little above 0. At the other end no sampler draws what is less
 * likely than its own random numbers are fine, and even at a temperature of 100 the untempered logarithm
 * of what it drew stays far above the bound: what lies below is a server's stand-in for minus infinity.
 */
export const logprobRange = { least: -10_000, most: 1e-6 } as const;

/** Whether a value can be the logprob of a token that was sampled. */
export function isSampledLogprob(value: unknown): value is number {
  return typeof value === "number" && value >= logprobRange.least && value <= logprobRange.most;
}
