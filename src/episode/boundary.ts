import {
  RolloutError,
  describeError,
  isOwnBug,
  parties,
  type InvariantError,
  type Party,
} from "../errors.ts";
import type { Environment } from "../environment/environment.ts";
import type { CallTerms, CallWatch } from "./turn/call-watch.ts";
import { isSoundFailure } from "./check/is-sound-failure.ts";

/** A boundary to code that is not ours: whom to blame, for what, and how long to wait. */
export interface Boundary {
  /** Blamed for what is thrown without a code of its own, and for a wait that took too long. */
  readonly party: Party;
  /** Whose failures may come from beyond it: any other's is the party's own. Default: see `whoseFailures`. */
  readonly passes?: readonly Party[];
  /** What is being done, such as `score task tau-retail/test/7`. */
  readonly what: string;
  /** What is to be looked at where no answer comes, such as `score() of lamps (lamps.js:12)`. */
  readonly suspect?: string;
  /** Who is waited for within the call at the moment, and for what; absent where nobody else is. */
  readonly waitsFor?: () => Pick<Boundary, "party" | "what"> | undefined;
  /** In milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Whose failures may come from beyond a boundary to whom. A world asks its user, and may score as it goes. But a
 * judge, a tool or a user that samples by an engine of this package's fails by itself: the policy's engine has done
 * nothing.
 */
const whoseFailures: Readonly<Record<Party, readonly Party[]>> = {
  engine: ["engine"],
  user: ["user"],
  environment: ["environment", "user", "grader"],
  grader: ["environment", "user", "grader"],
  agent: ["agent"],
  internal: parties,
};

/** What the author of an environment calls what answers, by what is asked of it: defined, and by hand. */
const functions = {
  open: ["initialState()", "open()"],
  score: ["score()", "score()"],
  dispose: ["dispose()", "[Symbol.asyncDispose]()"],
} as const;

/** A function of an environment's author as it is named to them, with its place where that is known. */
export function suspectOf({ name, definedAt }: Environment, asked: keyof typeof functions): string {
  const [defined, byHand] = functions[asked];
  return definedAt === undefined ? `${byHand} of ${name}` : `${defined} of ${name} (${definedAt})`;
}

/**
 * Crosses a boundary: whatever is thrown beyond it, at once or later, leaves as a `RolloutError` that
 * names the party (`party/exception`) and keeps what was thrown as its cause, and a wait without an
 * end as `party/timeout`. Failures of those who may stand behind it, our own bugs, what stops the episode's
 * playback and the caller's abort pass untouched. What comes back is whatever the other side returned: check it.
 */
export function crossBoundary<Result>(
  watch: CallWatch,
  boundary: Boundary,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  return watch.within(boundary.timeoutMs, work, new BoundaryTerms(watch, boundary));
}

/** A class, as a boundary is crossed several times in each turn of each episode. */
class BoundaryTerms implements CallTerms {
  readonly #watch: CallWatch;
  readonly #boundary: Boundary;
  readonly mayWait: boolean;

  constructor(watch: CallWatch, boundary: Boundary) {
    this.#watch = watch;
    this.#boundary = boundary;
    this.mayWait = boundary.waitsFor !== undefined;
  }

  onLate(waitMs?: number): Error {
    return noAnswer(this.#boundary, waitMs);
  }

  name(error: unknown): unknown {
    return nameThrown(this.#watch.ownsStop, this.#boundary, error);
  }
}

function noAnswer(boundary: Boundary, waitMs?: number): RolloutError {
  const { timeoutMs, waitsFor } = boundary;
  const waited: Pick<Boundary, "party" | "what" | "suspect"> = waitsFor?.() ?? boundary;
  const { party, what, suspect } = waited;
  const remedy = suspect === undefined ? "" : `, expected one (a forgotten resolve in ${suspect}?)`;
  const message = `Cannot ${what}: no answer within ${waitMs ?? timeoutMs} ms${remedy}`;
  return new RolloutError(`${party}/timeout`, message, { retryable: true });
}

/** What was thrown, under the name of its party; what ends the episode's own playback as it is. */
export function nameThrown(
  ownsStop: (thrown: unknown) => boolean,
  boundary: Pick<Boundary, "party" | "what" | "passes">,
  error: unknown,
): unknown {
  return ownsStop(error) ? error : attribute(error, boundary);
}

/**
 * Crosses a boundary to code that answers at once, as `crossBoundary()` does, without a time limit.
 * Where it returns a promise all the same, of whatever kind, that is waited for within one. What comes back at
 * once is given at once, and what is thrown at once is thrown at once.
 *
 * @param boundary - Asked for where one is needed: there are several such calls in each turn, and few that wait or fail.
 */
export function crossBriefly<Result>(
  watch: CallWatch,
  boundary: () => Boundary,
  work: () => Result | Promise<Result>,
): Result | Promise<Result> {
  let result: Result | Promise<Result>;
  try {
    result = work();
    // What came back may be such that even this question throws.
    if (!isAwaitable(result)) return result;
  } catch (error) {
    throw nameThrown(watch.ownsStop, boundary(), error);
  }
  const promised = Promise.resolve(result);
  // Where the episode has been given up, nobody waits for it, and Node would end the process if it failed.
  promised.catch(() => {});
  return crossBoundary(watch, boundary(), async () => await promised);
}

/** Whether there is something to wait for: a promise of whatever kind, such as a query of a database's library. */
function isAwaitable<Result>(result: Result | Promise<Result>): result is Promise<Result> {
  return typeof (result as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/**
 * What is thrown beyond a boundary, under the name of the party that answers for it; our own bugs as they are.
 * What stops the playback of another episode, such as a call that two worlds share, is the party's as well.
 */
export function attribute(
  error: unknown,
  { party, what, passes = whoseFailures[party] }: Pick<Boundary, "party" | "what" | "passes">,
): RolloutError | InvariantError {
  if (isOwnBug(error)) return error;
  const isSound = isSoundFailure(error);
  if (isSound && passes.includes(error.party)) return error;
  const message = `Cannot ${what}: ${describeError(error)}`;
  // What another sampled for it is none of the policy's.
  const retryable = isSound && error.retryable;
  return new RolloutError(`${party}/exception`, message, { cause: error, retryable });
}
