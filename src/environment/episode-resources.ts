import { RolloutError, UsageError } from "../errors.ts";
import { onAbort } from "../async/on-abort.ts";

/** What an episode holds outside of its state, by keys: a connection, a process, a sandbox. */
export type GetResource = <Resource extends AsyncDisposable>(
  key: object,
  open: () => Promise<Resource>,
) => Promise<Resource>;

/** How long the rest may take together once nobody waits for it any more. Its timer keeps no process alive. */
const restMs = 60_000;

interface Held {
  readonly opening: Promise<AsyncDisposable>;
  /** Absent while it is being opened. */
  resource?: AsyncDisposable;
}

/** What an episode has opened; all of it is disposed of at its end, whatever became of the episode. */
export class EpisodeResources implements AsyncDisposable {
  readonly #held = new Map<object, Held>();
  readonly #limitRest: () => AbortSignal;
  #isOver = false;

  /** @param limitRest - Limits what is freed when nobody waits any more. Default: to a minute. */
  constructor(limitRest = () => AbortSignal.timeout(restMs)) {
    this.#limitRest = limitRest;
  }

  /** The episode's own resource under the key: opened when it is first asked for. */
  readonly get: GetResource = async (key, open) => {
    if (this.#isOver) {
      // A tool that nobody waits for any more: what it opened would be disposed of by nobody.
      throw new RolloutError(
        "environment/exception",
        "Cannot open a resource: the episode is over",
      );
    }
    const known = this.#held.get(key)?.opening as ReturnType<typeof open> | undefined;
    if (known !== undefined) return await known;
    const opening = open().then((resource) => {
      if (isDisposable(resource)) return resource;
      throw new UsageError(
        "Cannot keep a resource: it has no method [Symbol.asyncDispose], expected one that frees it",
      );
    });
    const held: Held = { opening };
    this.#held.set(key, held);
    try {
      const resource = await opening;
      held.resource = resource;
      return resource;
    } catch (error) {
      // The next call may have more luck.
      this.#held.delete(key);
      throw error;
    }
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }

  /**
   * Disposes of all of it, latest first, one after the other. What is still being opened is disposed of when it
   * comes, and nothing waits for that; nor for one that has not let go when whoever disposes waits no longer: what
   * was opened before it may be a container.
   *
   * @param options.first - What is done before that.
   * @param options.signal - Aborts when nobody waits any more. Default: each is waited for as long as it takes.
   * @throws AggregateError, or the one error there is, when all has been tried.
   */
  async free({
    first,
    signal,
  }: {
    readonly first?: (() => Promise<unknown>) | undefined;
    readonly signal?: AbortSignal | undefined;
  } = {}): Promise<void> {
    this.#isOver = true;
    const held = [...this.#held.values()].toReversed();
    this.#held.clear();
    const errors: unknown[] = [];
    const attempt = async (work: () => unknown): Promise<void> => {
      try {
        await work();
      } catch (error) {
        errors.push(error);
      }
    };
    const tried = held.map(async ({ opening, resource }) => {
      if (resource === undefined) await attempt(() => disposeOnceOpen(opening));
    });
    const steps = held.flatMap(({ resource }) =>
      resource === undefined ? [] : [() => resource[Symbol.asyncDispose]()],
    );
    let rest: AbortSignal | undefined;
    for (const step of first === undefined ? steps : [first, ...steps]) {
      if (signal?.aborted) rest ??= this.#limitRest();
      const trying = attempt(step);
      tried.push(trying);
      await endOrAbort(trying, rest ?? signal);
    }
    await Promise.all(tried);
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, "several resources were not freed");
  }
}

/** Waits for work that does not fail, until the signal aborts. */
async function endOrAbort(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) {
    await work;
    return;
  }
  await new Promise<void>((resolve) => {
    const letGo = onAbort(signal, resolve);
    if (signal.aborted) resolve();
    void work.then(() => {
      letGo();
      resolve();
    });
  });
}

async function disposeOnceOpen(opening: Promise<AsyncDisposable>): Promise<void> {
  const resource = await opening.catch(() => undefined);
  await resource?.[Symbol.asyncDispose]();
}

function isDisposable(value: unknown): value is AsyncDisposable {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { [Symbol.asyncDispose]?: unknown })[Symbol.asyncDispose] === "function"
  );
}
