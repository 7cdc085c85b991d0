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

/** A call to foreign code: the responsible party, the action, and the time limit. */
export interface Boundary {
  /** The party responsible for errors without a failure code of their own, and for timeouts. */
  readonly party: Party;
  /**
   * Failures of these parties pass unchanged. A failure of any other party counts as an error of `party`. Default: see
   * `passedFailures`.
   */
  readonly passes?: readonly Party[];
  /** The action, such as `score task tau-retail/test/7`. */
  readonly what: string;
  /** The function to check after a timeout, such as `score() of lamps (lamps.js:12)`. */
  readonly suspect?: string;
  /**
   * Returns the other party that the call currently waits for, and the action. `undefined` if the call waits for its
   * own party.
   */
  readonly waitsFor?: () => Pick<Boundary, "party" | "what"> | undefined;
  /** Time limit in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * For each party that is called: the parties with failures that the call may throw unchanged. A world calls its user,
 * and may score at each step. A judge, tool or user that samples with an engine of this package is itself responsible
 * for a failure: the policy's engine is not at fault.
 */
const passedFailures: Readonly<Record<Party, readonly Party[]>> = {
  engine: ["engine"],
  user: ["user"],
  environment: ["environment", "user", "grader"],
  grader: ["environment", "user", "grader"],
  agent: ["agent"],
  internal: parties,
};

/**
 * The names of an environment's functions in messages for its author: for `defineEnvironment()`, and for an environment
 * that is written by hand.
 */
const functions = {
  open: ["initialState()", "open()"],
  score: ["score()", "score()"],
  dispose: ["dispose()", "[Symbol.asyncDispose]()"],
} as const;

/** The names of the functions of an environment in Python. */
const inPython = {
  open: "state() or open()",
  score: "score()",
  dispose: "dispose() or close()",
} as const;

function isPythonLine(place: string): boolean {
  return /\.py:\d+$/.test(place);
}

/** Returns the name of an environment's function as its author knows it, with its file and line if they are known. */
export function suspectOf(
  { name, definedAt }: Environment,
  called: keyof typeof functions,
): string {
  if (definedAt !== undefined && isPythonLine(definedAt)) {
    return `${inPython[called]} of ${name} (${definedAt})`;
  }
  const [defined, byHand] = functions[called];
  return definedAt === undefined ? `${byHand} of ${name}` : `${defined} of ${name} (${definedAt})`;
}

/**
 * Calls foreign code with a time limit. Every error becomes a `RolloutError` of the party (`party/exception`) with the
 * original error as its cause. A timeout becomes `party/timeout`. These errors pass unchanged: failures of the parties
 * in `passes`, bugs of this package, the end of the episode's playback, and the caller's abort. The result is not
 * checked.
 */
export function crossBoundary<Result>(
  watch: CallWatch,
  boundary: Boundary,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  return new Promise<Result>((resolve, reject) => {
    const call = watch.start(boundary.timeoutMs, new BoundaryTerms(watch, boundary), reject);
    try {
      Promise.resolve(work(call.signal)).then(
        (result) => {
          if (watch.end(call)) resolve(result);
        },
        (error: unknown) => watch.fail(call, error),
      );
    } catch (error) {
      watch.fail(call, error);
    }
  });
}

/**
 * Calls foreign code as `crossBoundary()` does, but one microtask later, when the time limit is running. So the limit
 * also counts for code that must be ended from outside, such as an endless loop.
 */
export async function crossLater<Result>(
  watch: CallWatch,
  boundary: Boundary,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  return await crossBoundary(watch, boundary, async (signal) => {
    await Promise.resolve();
    return await work(signal);
  });
}

/** The errors of a call to foreign code. A class, because each turn of each episode creates several. */
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
  const cause = suspect?.includes(".py:") === true ? "endless work" : "a forgotten resolve";
  const remedy = suspect === undefined ? "" : `, expected one (${cause} in ${suspect}?)`;
  const message = `Cannot ${what}: no answer within ${waitMs ?? timeoutMs} ms${remedy}`;
  return new RolloutError(`${party}/timeout`, message, { retryable: true });
}

/** Returns the error attributed to its party. The error that ends the episode's own playback stays as it is. */
export function nameThrown(
  ownsStop: (thrown: unknown) => boolean,
  boundary: Pick<Boundary, "party" | "what" | "passes">,
  error: unknown,
): unknown {
  return ownsStop(error) ? error : attribute(error, boundary);
}

/**
 * Calls foreign code that normally returns immediately, without a time limit. If it returns a promise or thenable
 * instead, `crossBoundary()` waits for that. Errors are attributed as in `crossBoundary()`, and thrown immediately if
 * the code throws immediately.
 *
 * @param boundary - Called only when needed: each turn makes several such calls, and few of them wait or fail.
 */
export function crossBriefly<Result>(
  watch: CallWatch,
  boundary: () => Boundary,
  work: () => Result | Promise<Result>,
): Result | Promise<Result> {
  let result: Result | Promise<Result>;
  try {
    result = work();
    // A getter named `then` may throw.
    if (!isAwaitable(result)) return result;
  } catch (error) {
    throw nameThrown(watch.ownsStop, boundary(), error);
  }
  const promised = Promise.resolve(result);
  // After an abort the promise is not awaited, and an unhandled rejection would end the process.
  promised.catch(() => {});
  return crossBoundary(watch, boundary(), async () => await promised);
}

/** True for promises and other thenables, such as a query of a database library. */
function isAwaitable<Result>(result: Result | Promise<Result>): result is Promise<Result> {
  return typeof (result as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/**
 * Attributes an error to the responsible party. Bugs of this package stay as they are. The end of another episode's
 * playback, for example in a call that two worlds share, counts as the party's error.
 */
export function attribute(
  error: unknown,
  { party, what, passes = passedFailures[party] }: Pick<Boundary, "party" | "what" | "passes">,
): RolloutError | InvariantError {
  if (isOwnBug(error)) return error;
  const isSound = isSoundFailure(error);
  if (isSound && passes.includes(error.party)) return error;
  const message = `Cannot ${what}: ${describeError(error)}`;
  // `discarded` is left out: other samplings are not the policy's.
  const retryable = isSound && error.retryable;
  return new RolloutError(`${party}/exception`, message, { cause: error, retryable });
}
