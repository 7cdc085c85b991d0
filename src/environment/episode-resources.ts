import { RolloutError, UsageError } from "../errors.ts";

/** What an episode holds outside of its state, by keys: a connection, a process, a sandbox. */
export type GetResource = <Resource extends AsyncDisposable>(
  key: object,
  open: () => Promise<Resource>,
) => Promise<Resource>;

/** What an episode has opened; all of it is disposed of at its end, whatever became of the episode. */
export class EpisodeResources implements AsyncDisposable {
  readonly #opened = new Map<object, Promise<AsyncDisposable>>();
  #isOver = false;

  /** The episode's own resource under the key: opened when it is first asked for. */
  readonly get: GetResource = async (key, open) => {
    if (this.#isOver) {
      // A tool that nobody waits for any more: what it opened would be disposed of by nobody.
      throw new RolloutError(
        "environment/exception",
        "Cannot open a resource: the episode is over",
      );
    }
    const known = this.#opened.get(key) as ReturnType<typeof open> | undefined;
    if (known !== undefined) return await known;
    const opening = open().then((resource) => {
      if (isDisposable(resource)) return resource;
      throw new UsageError(
        "Cannot keep a resource: it has no method [Symbol.asyncDispose], expected one that frees it",
      );
    });
    this.#opened.set(key, opening);
    try {
      return await opening;
    } catch (error) {
      // The next call may have more luck.
      this.#opened.delete(key);
      throw error;
    }
  };

  /** @throws AggregateError, or the one error there is, when all has been tried. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    const errors: unknown[] = [];
    const opened = [...this.#opened.values()].toReversed();
    this.#opened.clear();
    for (const opening of opened) {
      const resource = await opening.catch(() => undefined);
      try {
        await resource?.[Symbol.asyncDispose]();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, "several resources were not freed");
  }
}

function isDisposable(value: unknown): value is AsyncDisposable {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { [Symbol.asyncDispose]?: unknown })[Symbol.asyncDispose] === "function"
  );
}
