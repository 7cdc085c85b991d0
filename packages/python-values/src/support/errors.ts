/**
 * An invalid input of a person: a flag, a file, a folder, a field, a template. The message names it, its place and the
 * remedy. Turnwright's command line prints the message as one line and exits with status 2.
 */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, { cause }: { cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

/**
 * A bug: an invariant does not hold. Bugs of this package are never caught. Another package's bugs are its party's
 * failures.
 */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Bugs of this package. Environments and agents may throw their own `InvariantError`. */
const ownBugs = new WeakSet<InvariantError>();

/**
 * Creates the error for a broken invariant of this package. It ends the run, so use it only for conditions that no
 * caller can cause. For invalid calls by other code, throw a plain error: that is the caller's failure.
 */
export function ownBug(message: string): InvariantError {
  const bug = new InvariantError(message);
  ownBugs.add(bug);
  return bug;
}

/** True if the error is a bug of this package. */
export function isOwnBug(thrown: unknown): thrown is InvariantError {
  return ownBugs.has(thrown as InvariantError);
}

/**
 * Asserts an invariant of this package.
 *
 * @throws InvariantError with the message if the condition is false.
 */
export function assertInvariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw ownBug(message);
}

/**
 * Returns the message of an error, with the messages of its causes that it does not contain. Accepts any thrown value.
 */
export function describeError(error: unknown, depth = 0): string {
  try {
    if (!(error instanceof Error)) return String(error);
    const { name, cause } = error;
    // The message may be any value.
    const message: unknown = error.message;
    const own = message === "" ? name : String(message);
    if (cause === undefined || depth === maxCauses) return own;
    const inner = describeError(cause, depth + 1);
    return own.includes(inner) ? own : `${own}: ${inner}`;
  } catch {
    return unreadable;
  }
}

/** The text for an error that cannot be read. */
const unreadable = "an object without a text";

/** Maximum length of a chain of causes. An error may be its own cause. */
const maxCauses = 16;

/** Returns the stacks of an error and its causes, outermost first, for logs. Accepts any thrown value. */
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
