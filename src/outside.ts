/**
 * Calls what an episode cannot repeat by itself: a model, a web service, a sandbox, a clock, a random
 * draw. What comes back is recorded, and is answered from the record when the episode is played again
 * or goes on after a crash: the work is not done a second time then. Its result is plain data, a copy as JSON
 * has it from the first time on: a text for a `Date`, no member that is `undefined`, of a list its items
 * alone. Calls may run at once; the work of one makes no other.
 *
 * @param what - Names the call in the record, such as `chat user` or `GET /orders/7`. Of calls that run at once each
 *   has a name of its own, by which it is found again.
 * @throws whatever the work throws; from the record, an error of the same name, code and message, with
 *   its causes.
 */
export type Outside = <Result>(
  what: string,
  work: () => Result | Promise<Result>,
) => Promise<Result>;

/** Does the work and records nothing: for code that is called outside of an episode. */
export const callThrough: Outside = async (_what, work) => await work();

/** What was asked of `Outside` is nothing that could be recorded. Its name is that of a mistake in a program. */
export class OutsideMisuse extends TypeError {}

/** An episode cannot be played from its recording. Whatever calls `outside` lets it pass. */
export class PlaybackStop extends Error {
  override readonly name: string = "PlaybackStop";
}

/** Errors that stand for what somebody's call threw when it was recorded. */
const recorded = new WeakSet<Error>();

/** Notes that an error stands for one that was recorded: it is for whoever made the call to catch. */
export function asRecorded(error: Error): Error {
  recorded.add(error);
  return error;
}

/** Whether an error stands for one that was recorded. */
export function isRecorded(thrown: unknown): boolean {
  return thrown instanceof Error && recorded.has(thrown);
}
