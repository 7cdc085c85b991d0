import { InvariantError } from "../../errors.ts";
import { endedBy } from "../../async/ended-by.ts";
import { onAbort } from "../../async/on-abort.ts";
import type { UserSession } from "../../user/user.ts";
import { nameThrown, type Boundary } from "../boundary.ts";
import type { CallWatch } from "./call-watch.ts";
import { checkFirstLine, checkLine } from "../check/check-foreign.ts";
import { describe } from "../check/foreign-value.ts";

/** A line that the world requests from the user. */
interface Asked extends Pick<Boundary, "party" | "what"> {
  /** Aborts when the world cancels the request. */
  readonly signal: AbortSignal;
  /** True once the user has answered or failed. */
  readonly isOver: boolean;
}

/**
 * Attributes failures to the user or the world. Errors of the user, invalid lines and timeouts while waiting for a line
 * are failures of the user. All other errors in the same call are failures of the world.
 */
export class UserCallTracker {
  readonly #taskId: string;
  readonly #strategy: string;
  readonly #ownsStop: (thrown: unknown) => boolean;
  readonly #wasGivenUp: (thrown: unknown) => boolean;
  readonly #timeoutMs: number;
  /** The watch of the latest call to the world. */
  #watch: Pick<CallWatch, "waitWithin"> | undefined;
  #asked: Asked | undefined;
  /** The requests that the call currently waits for. Several lines may be requested at once. */
  #waits: Asked[] = [];
  /** True once the user has said a line. Only then can the world request another line in its place (`retake`). */
  #hasSpoken = false;

  /**
   * @param about - `timeoutMs` is the user's time for all lines of one call to the world. The world's own time limit is
   *   paused while it waits for a line. `ownsStop` and `wasGivenUp` are `owns()` and `isCancellation()` of the
   *   episode's playback (see `RecordedInputs`). Default: the episode has no playback.
   */
  constructor(about: {
    readonly taskId: string;
    readonly strategy: string;
    readonly timeoutMs: number;
    readonly ownsStop?: (thrown: unknown) => boolean;
    readonly wasGivenUp?: (thrown: unknown) => boolean;
  }) {
    const { taskId, strategy, ownsStop = () => false, wasGivenUp = () => false } = about;
    this.#taskId = taskId;
    this.#strategy = strategy;
    this.#ownsStop = ownsStop;
    this.#wasGivenUp = wasGivenUp;
    this.#timeoutMs = about.timeoutMs;
  }

  /** The current request, if any. */
  get asked(): Asked | undefined {
    return this.#asked;
  }

  /**
   * Starts watching a world call. Returns a function that reports the user request the call is blocked on, if any.
   *
   * @param watch - The watch of the call. No other calls use it.
   */
  watchCall(watch: Pick<CallWatch, "waitWithin">): () => Asked | undefined {
    this.#watch = watch;
    // The previous call may have cancelled a request that was never answered.
    this.#asked = undefined;
    const waits: Asked[] = [];
    this.#waits = waits;
    return () => waits.at(-1);
  }

  /** Wraps a session for the world. */
  watched(session: UserSession): UserSession {
    return {
      begin: async (options) =>
        await this.#hear("first line of", options, async () =>
          checkFirstLine(await session.begin(options), this.#placeOf("begin")),
        ),
      reply: async (text, options) => {
        this.#requireText(text);
        return await this.#hear("reply in", options, async () =>
          checkLine(await session.reply(text, options), this.#placeOf("reply")),
        );
      },
      ...(session.retake && {
        retake: async (options) => {
          if (!this.#hasSpoken) {
            throw new InvariantError(
              `Cannot ask the user of task ${this.#taskId} for another line: they have said none`,
            );
          }
          return await this.#hear("reply in", options, async () =>
            checkLine(await session.retake!(options), this.#placeOf("retake")),
          );
        },
      }),
      usage: () => session.usage(),
    };
  }

  async #hear<Line>(
    what: string,
    options: { readonly signal?: unknown } | undefined,
    say: () => Promise<Line>,
  ): Promise<Line> {
    const said = `hear the user's ${what} task ${this.#taskId}`;
    const signal: unknown = options?.signal;
    if (!(signal instanceof AbortSignal)) {
      const given =
        signal === undefined ? "without a signal" : `with ${describe(signal)} as signal`;
      throw new TypeError(
        `Cannot ${said}: the world asks for it ${given}, expected the one that it was called with ({ signal })`,
      );
    }
    const asked = { party: "user" as const, what: said, signal, isOver: false };
    this.#asked = asked;
    const endWait = this.#startWait(asked);
    // The user's time ends when the world cancels the request.
    const letGo = onAbort(signal, endWait);
    try {
      const line = await say();
      this.#hasSpoken = true;
      return line;
    } catch (error) {
      // The world gets the reason of its own cancellation. It is not a failure of the user.
      if (endedBy(signal, error)) throw error;
      // The same for a recorded cancellation: the signal may not be aborted yet.
      if (this.#wasGivenUp(error)) throw error;
      throw nameThrown(this.#ownsStop, asked, error);
    } finally {
      letGo();
      endWait();
      asked.isOver = true;
      if (this.#asked === asked) this.#asked = undefined;
    }
  }

  /** Starts the user's time for a line. Call the returned function to end it. */
  #startWait(asked: Asked): () => void {
    if (asked.signal.aborted) return () => {};
    const waits = this.#waits;
    waits.push(asked);
    const goOn = this.#watch?.waitWithin(this.#timeoutMs) ?? (() => {});
    return () => {
      const place = waits.indexOf(asked);
      if (place >= 0) waits.splice(place, 1);
      goOn();
    };
  }

  /**
   * Checks the text that the world passes to the user.
   *
   * @throws TypeError if the world passes something other than a text to the user.
   */
  #requireText(text: unknown): void {
    if (typeof text === "string") return;
    throw new TypeError(
      `Cannot hear the user's reply in task ${this.#taskId}: the world passes ${describe(text)}, expected ` +
        "a text (what the agent said)",
    );
  }

  #placeOf(method: string): string {
    return `user.${method}() of ${this.#strategy} in task ${this.#taskId}`;
  }
}
