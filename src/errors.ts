export {
  assertInvariant,
  describeError,
  describeStack,
  InvariantError,
  isOwnBug,
  ownBug,
  UsageError,
} from "../packages/python-values/src/support/errors.ts";

/** The parties that can be responsible for a failure. */
export const parties = ["engine", "user", "environment", "grader", "agent", "internal"] as const;

/** The party responsible for a failure. */
export type Party = (typeof parties)[number];

/** The code of a failure: party, slash, and kind, such as `engine/timeout`. */
export type FailureCode = `${Party}/${string}`;

/** A failure in the record of an episode. JSON-able. */
export interface Failure {
  readonly party: Party;
  readonly code: FailureCode;
  readonly message: string;
  /** Ids that the engine sampled for the failed turn, if any. */
  readonly discarded?: readonly DiscardedSampling[];
}

/** Ids that an engine sampled and that no row contains, with the reason. JSON-able. */
export interface DiscardedSampling {
  readonly requestId: string;
  readonly reason: string;
  /** The number of the discarded ids. Absent if no reply arrived. */
  readonly tokenCount?: number;
}

/**
 * An outage: a party that the episode depends on (engine, user model, tool backend, grader) did not work. The episode
 * is `failed`, has no reward, is counted, and may be played again. A model's mistake is never a `RolloutError`: it is
 * an observation.
 */
export class RolloutError extends Error {
  override readonly name = "RolloutError";
  /** Party and kind, such as `engine/timeout`. */
  readonly code: FailureCode;
  /** True if the same request may succeed later. */
  readonly retryable: boolean;
  /** Ids that the engine sampled for the failed turn. */
  readonly discarded: readonly DiscardedSampling[];

  constructor(
    code: FailureCode,
    message: string,
    {
      cause,
      retryable = false,
      discarded = [],
    }: {
      cause?: unknown;
      retryable?: boolean;
      discarded?: readonly DiscardedSampling[];
    } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = retryable;
    this.discarded = discarded;
  }

  get party(): Party {
    return this.code.slice(0, this.code.indexOf("/")) as Party;
  }

  /** Returns the failure as plain data. */
  toFailure(): Failure {
    const { party, code, message, discarded } = this;
    return { party, code, message, ...(discarded.length !== 0 && { discarded }) };
  }
}
