import { InvariantError } from "../../errors.ts";
import { endedBy } from "../../async/ended-by.ts";
import { onAbort } from "../../async/on-abort.ts";
import type { UserSession } from "../../user/user.ts";
import { nameThrown, type Boundary } from "../boundary.ts";
import type { CallWatch } from "./call-watch.ts";
import { checkFirstLine, checkLine } from "../check/check-foreign.ts";
import { describe } from "../check/foreign-value.ts";

/** What the user is asked for. */
interface Asked extends Pick<Boundary, "party" | "what"> {
  /** Aborted, the world gives up the wait. */
  readonly signal: AbortSignal;
  /** Whether the user has answered, or failed to. */
  readonly isOver: boolean;
}

/**
 * Tells the user apart from the world that asks for their lines: what a user throws or says that is no line is
 * theirs, and so is a wait for them. Whatever else goes wrong in the same call is the world's.
 */
export class UserCallTracker {
  readonly #taskId: string;
  readonly #strategy: string;
  readonly #ownsStop: (thrown: unknown) => boolean;
  readonly #wasGivenUp: (thrown: unknown) => boolean;
  readonly #timeoutMs: number;
  /** Of the call to the world that began last. */
  #watch: Pick<CallWatch, "waitWithin"> | undefined;
  #asked: Asked | undefined;
  /** All that is waited for within it, in the user's time: several lines may be asked for at once. */
  #waits: Asked[] = [];
  /** Whether there is a line that another may be asked for. */
  #hasSpoken = false;

  /**
   * @param about - `timeoutMs` is the user's time for all lines of one call to the world, which runs in the place of
   *   the world's while that waits for one. `ownsStop` and `wasGivenUp` are those of the episode's playback (see
   *   `RecordedInputs`). Default: there is none.
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

  /** What the user is asked for now; absent while they are not. */
  get asked(): Asked | undefined {
    return this.#asked;
  }

  /**
   * For a call to the world that begins now: tells what it waits for of the user, if it does and has not given up.
   *
   * @param watch - What the call is made with, and nothing but calls to the world.
   */
  listen(watch: Pick<CallWatch, "waitWithin">): () => Asked | undefined {
    this.#watch = watch;
    // A world may have given up on a line that never came.
    this.#asked = undefined;
    const waits: Asked[] = [];
    this.#waits = waits;
    return () => waits.at(-1);
  }

  /** A conversation as a world is given it. */
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
    // A world that gives up the wait goes on in its own time.
    const letGo = onAbort(signal, endWait);
    try {
      const line = await say();
      this.#hasSpoken = true;
      return line;
    } catch (error) {
      // A world that gives up the wait is told so: that is no failure of the user's.
      if (endedBy(signal, error)) throw error;
      // Nor where it gave up when this was recorded: its signal may not be aborted yet.
      if (this.#wasGivenUp(error)) throw error;
      throw nameThrown(this.#ownsStop, asked, error);
    } finally {
      letGo();
      endWait();
      asked.isOver = true;
      if (this.#asked === asked) this.#asked = undefined;
    }
  }

  /** The user's time runs for a line until the function that this returns is called. */
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

  /** The world passes on what the agent said, and may pass on what is none. */
  #requireText(text: unknown): void {
    if (typeof text === "string") return;
    throw new TypeError(
      `Cannot hear the user's reply in task ${this.#taskId}: the world tells them ${describe(text)}, expected ` +
        "a text (what the agent said)",
    );
  }

  #placeOf(method: string): string {
    return `user.${method}() of ${this.#strategy} in task ${this.#taskId}`;
  }
}
