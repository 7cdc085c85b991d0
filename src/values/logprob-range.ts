/**
 * The range of a sampled token's logprob, both bounds included, in nats.
 *
 * Rounding can lift the logarithm of a probability of 1 a little above 0. Values below the lower
 * bound are a server's replacement for minus infinity: no sampler draws tokens that unlikely, even
 * at a temperature of 100.
 */
export const logprobRange = { min: -10_000, max: 1e-6 } as const;

/** True if a value can be the logprob of a sampled token. */
export function isSampledLogprob(value: unknown): value is number {
  return typeof value === "number" && value >= logprobRange.min && value <= logprobRange.max;
}
