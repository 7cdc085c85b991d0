import { RolloutError, type Party } from "../../errors.ts";
import { OutsideMisuse } from "../../outside.ts";

/** A line that the world requests from the user. */
export interface UserRequest {
  /** True once the user has answered or failed. */
  readonly isOver: boolean;
  /** The signal by which the world cancels the request. */
  readonly signal: AbortSignal;
}

/** A call through `outside` that has no result yet. */
interface PendingCall {
  readonly what: string;
  readonly party: Party;
  /** The request to the user during which the call started. */
  readonly userRequest: UserRequest | undefined;
}

/** Calls that the user answers. All others are the environment's. */
const userCalls: readonly string[] = ["begin", "step say", "usage"];

/**
 * The call to the user or the world that is under way, and the calls through `outside` that it makes. Live inputs and
 * recorded inputs share it, because an episode may change from recorded to live in the middle of a call.
 */
export class CallState {
  /** Number of calls through `outside` so far, including recorded calls that were skipped. */
  startedCount = 0;
  /** The call through `outside` that starts its work right now. */
  starting: string | undefined;
  /** Calls through `outside` that are under way, by index. */
  readonly pending = new Map<number, PendingCall>();
  readonly #userRequest: () => UserRequest | undefined;
  /** The call to the user or the world that is under way, or the last one. `undefined` before the first. */
  #current: string | undefined;
  #runningCount = 0;
  #isDisposing = false;
  /** The first call through `outside` that was made between two calls to the world. */
  #stray: { readonly party: Party; readonly why: string } | undefined;

  /** @param userRequest - Returns the line that the world currently requests from the user. */
  constructor(userRequest: () => UserRequest | undefined) {
    this.#userRequest = userRequest;
  }

  get userRequest(): UserRequest | undefined {
    return this.#userRequest();
  }

  get current(): string | undefined {
    return this.#current;
  }

  /** True while the world is disposed of. */
  get isDisposing(): boolean {
    return this.#isDisposing;
  }

  /** True if calls through `outside` are allowed now. Before the first call, only the user makes them. */
  get allowsOutside(): boolean {
    return this.#current === undefined || this.#runningCount > 0;
  }

  /** The party that makes a call through `outside` now. */
  get caller(): Party {
    const current = this.#current;
    const isUser = current === undefined || current === "usage" || this.userRequest !== undefined;
    return isUser ? "user" : "environment";
  }

  /** The party that answers the current call. */
  get answerer(): Party {
    const isUser = this.#current === undefined || userCalls.includes(this.#current);
    return isUser ? "user" : "environment";
  }

  /** Records that a call to the user or the world starts. Call `exit()` when it ends. */
  enter(what: string): void {
    this.#current = what;
    this.#runningCount += 1;
  }

  exit(): void {
    this.#runningCount -= 1;
  }

  /** Disposes of the world, which may make calls through `outside` meanwhile. */
  async disposing(work: () => Promise<void>): Promise<void> {
    this.#runningCount += 1;
    this.#isDisposing = true;
    try {
      await work();
    } finally {
      this.#isDisposing = false;
      this.#runningCount -= 1;
    }
  }

  /**
   * Returns the error for a call through `outside` between two calls to the world, for example by a timer. A replay
   * would not find the call at the same point, so the next call to the world fails too.
   */
  refuseStray(what: string, by: Party): OutsideMisuse {
    const why =
      `${what} was called through outside when ${this.#current} had been answered, expected it to be called ` +
      `before, and awaited (await outside("${what}", …))`;
    // The world is responsible for when the user is asked.
    const party = this.userRequest === undefined ? by : "environment";
    this.#stray ??= { party, why };
    return new OutsideMisuse(`Cannot call what is outside: ${why}`);
  }

  /**
   * Refuses to continue after a call to `outside` that the world did not wait for.
   *
   * @throws RolloutError if a call through `outside` was made between two calls to the world.
   */
  requireNoStray(what: string): void {
    if (this.#stray === undefined || what === "usage") return;
    const { party, why } = this.#stray;
    throw new RolloutError(
      `${party}/outside-not-awaited`,
      `Cannot continue with ${what}: ${why}, or the episode could not be played again`,
    );
  }

  /**
   * Requires that all calls through `outside` ended before the answer. A call that ends later would be recorded after
   * the answer, where a replay does not look for it. `usage` is exempt: a late call fails only the answer for which it
   * was made.
   *
   * @throws RolloutError with the party that had to wait: the caller, or the world if it did not wait for the user.
   */
  requireAwaited(what: string): void {
    const [left] = this.pending.values();
    if (left === undefined || what === "usage") return;
    const isForUser = left.userRequest?.isOver === false;
    const party = !isForUser ? left.party : what === "score" ? "grader" : "environment";
    const wait = isForUser ? "for the user's line" : `(await outside("${left.what}", …))`;
    throw new RolloutError(
      `${party}/outside-not-awaited`,
      `Cannot use the answer of ${what}: it came before that of ${left.what}, which was called through outside, ` +
        `expected it to wait ${wait}, or the episode could not be played again`,
    );
  }
}
