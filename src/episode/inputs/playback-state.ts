import type { Party } from "../../errors.ts";
import type { PlaybackStop } from "../../outside.ts";
import type { AnswerOrder } from "./answer-order.ts";
import { RecordingEnd, ReplayDivergence } from "./playback-stop.ts";

/** The state of a playback: the error that ended it, and the reason why the episode cannot continue live. */
export class PlaybackState {
  readonly #order: AnswerOrder;
  /** The reason why the episode cannot continue live: the name of a party that is not repeatable. */
  #bound: string | undefined;
  /** The error that ended the playback. It is thrown again if a world or a user catches it. */
  #stop: PlaybackStop | undefined;

  constructor(order: AnswerOrder) {
    this.#order = order;
  }

  /** True if this error ended the playback. */
  owns(thrown: unknown): boolean {
    return this.#stop !== undefined && thrown === this.#stop;
  }

  /** Records that a party that is not repeatable was answered from the recording. */
  bind(bound: string | undefined): void {
    this.#bound ??= bound;
  }

  /** Ends the playback because the episode differs from its recording. Returns the error to throw. */
  diverge(party: Party, message: string): PlaybackStop {
    return this.#stopWith(new ReplayDivergence(party, message));
  }

  /** Ends the playback because the recording ends before the episode. Returns the error to throw. */
  end(message: string): PlaybackStop {
    return this.#stopWith(new RecordingEnd(message));
  }

  #stopWith(stop: PlaybackStop): PlaybackStop {
    this.#stop ??= stop;
    this.#order.disable();
    return this.#stop;
  }

  throwIfStopped(): void {
    if (this.#stop !== undefined) throw this.#stop;
  }

  /** Awaits the work. Throws the error that ended the playback, even if the work caught it. */
  async orStop<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } finally {
      this.throwIfStopped();
    }
  }

  /**
   * Checks that no party lost its state.
   * @throws RecordingEnd if a party that is not repeatable was answered from the recording, so that it does not have
   *   its state.
   */
  requireUnbound(): void {
    if (this.#bound === undefined) return;
    throw this.end(`${this.#bound}: the episode cannot continue from its recording`);
  }

  /** Forgets the playback: the episode continues without its recording. */
  leave(): void {
    this.#bound = undefined;
    this.#stop = undefined;
    this.#order.disable();
  }
}
