import type { SequenceRequest } from "../shared/sequence-request.ts";

/** One sequence to sample, and what is to be said of it. */
export interface VllmSequenceRequest extends SequenceRequest {
  /** The name that aborts it, which several may share. */
  readonly externalId: string;
  /** The number of most likely tokens to list beside the sampled one. Absent for no logprobs. */
  readonly logprobCount: number | undefined;
}
