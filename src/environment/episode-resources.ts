import { RolloutError, UsageError } from "../errors.ts";
import { onAbort } from "../async/on-abort.ts";

/**
 * Returns the resource under a key, such as a connection, a process or a sandbox. Opens the resource at the first call.
 * The resource stays open until the episode ends.
 */
export type GetResource = <Resource extends AsyncDisposable>(
  key: object,
  open: () => Promise<Resource>,
) => Promise<Resource>;

/**
 * Time limit in milliseconds for all resources that are freed after the episode stopped waiting. The timer does not
 * keep the process alive.
 */
const restMs = 60_000;

interface Held {
  readonly opening: Promise<AsyncDisposable>;
  /** The resource. `undefined` while it is being opened. */
  resource?: AsyncDisposable;
}

/** The resources that an episode opened. All of them are disposed of when it ends. */
export class EpisodeResources implements AsyncDisposable {
  readonly #held = new Map<object, Held>();
  readonly #limitRest: () => AbortSignal;
  #isOver = false;

  /** @param limitRest - Limits the time of disposal after the episode stopped waiting. Default: a minute. */
  constructor(limitRest = () => AbortSignal.timeout(restMs)) {
    this.#limitRest = limitRest;
  }

  /** Returns the episode's resource under the key; the first call opens it. */
  readonly get: GetResource = async (key, open) => {
    if (this.#isOver) {
      // The episode has ended and abandoned this tool's call: a resource opened now would never be disposed of.
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
      // The next call may succeed.
      this.#held.delete(key);
      throw error;
    }
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }

  /**
   * Disposes of all resources, one after the other, the latest first. A resource that is still being opened is
   * disposed of once it is open, without waiting for it. After the signal aborts, a disposal that hangs no longer
   * delays the others: an earlier resource may be a container.
   *
   * @param options.first - Work to do before the disposal.
   * @param options.signal - Aborts when the episode stops waiting. Default: each disposal takes as long as it
   * needs.
   * @throws AggregateError if several disposals failed, or the single error, after all were tried.
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

/** Waits for work that never rejects, until the signal aborts. */
async function endOrAbort(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) {
    await work;
    return;
  }
  await new Promise<void>((resolve) => {
    const unsubscribe = onAbort(signal, resolve);
    if (signal.aborted) resolve();
    void work.then(() => {
      unsubscribe();
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
