import type { SequenceRequest } from "../server/sequence-request.ts";

/** One sequence to sample, and what is to be said of it. */
export interface VllmSequenceRequest extends SequenceRequest {
  /** The name that aborts it, which several may share. */
  readonly externalId: string;
  /** How many of the likeliest tokens are listed beside the sampled one; absent for no logprobs. */
  readonly logprobCount: number | undefined;
}
