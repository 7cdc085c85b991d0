/**
 * Makes a call that an episode cannot repeat by itself: to a model, a web service, a sandbox, a clock or a random
 * generator. The result is recorded. When the episode is played again or continues after a crash, the recorded result
 * is returned and the work is not done again.
 *
 * The result is plain data. The first call returns it as JSON gives it back, too: a text for a `Date`, no members that
 * are `undefined`, and only the items of a list. Calls may run at the same time. The work of one call must not make
 * another.
 *
 * @param what - The call's name in the recording, such as `chat user` or `GET /orders/7`. Calls that run at the same
 *   time need different names.
 * @throws any error of the work. From the recording, an error of the same name, code and message, with its causes.
 */
export type Outside = <Result>(
  what: string,
  work: () => Result | Promise<Result>,
) => Promise<Result>;

/** Calls `work` without recording it, for code that runs outside of an episode. */
export const callThrough: Outside = async (_what, work) => await work();

/** A call that cannot be recorded. A `TypeError`, because it is a mistake in the calling program. */
export class OutsideMisuse extends TypeError {}

/** Ends the playback of a recording. Code that calls `outside` must let this error pass. */
export class PlaybackStop extends Error {
  override readonly name: string = "PlaybackStop";
}

/** Errors that were created from a recording. */
const recorded = new WeakSet<Error>();

/** Marks an error as created from a recording: the code that made the call may catch it. */
export function asRecorded(error: Error): Error {
  recorded.add(error);
  return error;
}

/** True if the error was created from a recording. */
export function isRecorded(thrown: unknown): boolean {
  return thrown instanceof Error && recorded.has(thrown);
}
