import type { ServerPolicy } from "./server-policy.ts";

/** Settings of `createEchoPolicy()`. */
export interface EchoPolicyOptions {
  /** The number of ids from the prompt's end to repeat. Default: all of them. */
  readonly tokenCount?: number;
  /** The id that ends a turn. Default 2. */
  readonly stopTokenId?: number;
}

/**
 * Creates a policy that repeats the end of the prompt and then stops. The logprob of the i-th token
 * (0-based) is -(i + 1) / 16.
 */
export function createEchoPolicy({
  tokenCount,
  stopTokenId = 2,
}: EchoPolicyOptions = {}): ServerPolicy {
  return {
    name: "echo",
    begin({ inputIds }) {
      const echoed = inputIds.slice(Math.max(inputIds.length - (tokenCount ?? inputIds.length), 0));
      return [...echoed, stopTokenId].map((id, index) => ({ id, logprob: -(index + 1) / 16 }));
    },
  };
}
