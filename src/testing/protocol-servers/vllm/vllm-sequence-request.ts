import type { SequenceRequest } from "../shared/sequence-request.ts";

/** One sequence to sample, with the options of its reply. */
export interface VllmSequenceRequest extends SequenceRequest {
  /** The name that aborts the sequence. Several sequences may share it. */
  readonly externalId: string;
  /** The number of most likely tokens to list beside the sampled one. Absent if no logprobs are requested. */
  readonly logprobCount: number | undefined;
  /** The first row of routed experts in the reply. */
  readonly routesFrom: number;
}
