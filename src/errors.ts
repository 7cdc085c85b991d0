/** Who a failure can be attributed to. */
export const parties = ["engine", "user", "environment", "grader", "agent", "internal"] as const;

/** Who a failure is attributed to. */
export type Party = (typeof parties)[number];

/** A failure's code: the party, a slash, and what happened, such as `engine/timeout`. */
export type FailureCode = `${Party}/${string}`;

/** What a finished episode says about the failure that ended it. JSON-able. */
export interface Failure {
  readonly party: Party;
  readonly code: FailureCode;
  readonly message: string;
  /** What the engine sampled for the turn that failed; absent where that is nothing. */
  readonly discarded?: readonly DiscardedSampling[];
}

/** Tokens that an engine sampled and that no sample will carry, with the reason. JSON-able. */
export interface DiscardedSampling {
  readonly requestId: string;
  readonly reason: string;
  /** Absent where the engine's answer never arrived. */
  readonly tokenCount?: number;
}

/**
 * An outage: something that the episode depends on (engine, user model, tool backend, grader) did
 * not do its part. The episode that meets it is `failed`, carries no reward, is counted, and may be
 * tried again. A model's mistake is never a `RolloutError`; it is an observation.
 */
export class RolloutError extends Error {
  override readonly name = "RolloutError";
  /** The party and what happened, such as `engine/timeout`. */
  readonly code: FailureCode;
  /** Whether the same request may succeed when it is made again. */
  readonly retryable: boolean;
  /** What the engine sampled for the turn that failed. */
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

  /** The JSON-able account of this failure. */
  toFailure(): Failure {
    const { party, code, message, discarded } = this;
    return { party, code, message, ...(discarded.length !== 0 && { discarded }) };
  }
}

/**
 * What a person gave us cannot be used: a flag, a file, a folder, a field. The message names the
 * thing, its place and the remedy; the command line prints it as one line and exits with status 2.
 */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, { cause }: { cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

/** A bug: an invariant does not hold. Nothing catches one of ours; anybody else's is that party's failure. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Bugs of this package's: environments and agents throw `InvariantError`s of their own, from anywhere. */
const ownBugs = new WeakSet<InvariantError>();

/**
 * Makes what is thrown where an invariant of this package's does not hold. It ends the run, so it is for what no
 * caller can cause: what is called wrongly by somebody else's code refuses that by a plain error, which is theirs.
 */
export function ownBug(message: string): InvariantError {
  const bug = new InvariantError(message);
  ownBugs.add(bug);
  return bug;
}

/** Whether what was thrown is a bug of this package's. */
export function isOwnBug(thrown: unknown): thrown is InvariantError {
  return ownBugs.has(thrown as InvariantError);
}

/**
 * Asserts an invariant of this package's.
 *
 * @throws InvariantError with the message where the condition does not hold.
 */
export function assertInvariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw ownBug(message);
}

/** The message of anything that was thrown, with those of its causes that it does not quote itself. */
export function describeError(error: unknown, depth = 0): string {
  try {
    if (!(error instanceof Error)) return String(error);
    const { name, cause } = error;
    // Whoever threw it may have put anything there.
    const message: unknown = error.message;
    const own = message === "" ? name : String(message);
    if (cause === undefined || depth === maxCauses) return own;
    const inner = describeError(cause, depth + 1);
    return own.includes(inner) ? own : `${own}: ${inner}`;
  } catch {
    return unreadable;
  }
}

/** Not everything that is thrown can be read, and reading it must not throw. */
const unreadable = "an object without a text";

/** Errors may be their own causes. */
const maxCauses = 16;

/** The stacks of anything that was thrown and of its causes, outermost first; for logs. */
export function describeStack(error: unknown, depth = 0): string {
  try {
    if (!(error instanceof Error)) return String(error);
    const { stack, name, message, cause } = error;
    const own = typeof stack === "string" ? stack : `${name}: ${message}`;
    if (cause === undefined || depth === maxCauses) return own;
    return `${own}\nCaused by: ${describeStack(cause, depth + 1)}`;
  } catch {
    return unreadable;
  }
}
