/**
 * The episode's time, in milliseconds since the epoch. After a recording, time continues from the recording's end.
 * Pauses do not count.
 */
export class EpisodeTime {
  /** Number of times that the episode has read the time, recorded readings included. */
  readingCount = 0;
  readonly #now: () => number;
  readonly #recordedEndMs: number | undefined;
  readonly #onLive: () => void;
  /**
   * The number of milliseconds that is added to live readings. `undefined` until the first live reading after a
   * recording.
   */
  #offsetMs: number | undefined;
  #pausedMs = 0;
  #pausedSinceMs: number | undefined;

  /**
   * @param options - `recordedEndMs` is the time at which the recording ends, if it says so. `onLive` is called once,
   *   at the first live reading after a recording.
   */
  constructor(options: {
    readonly now: () => number;
    readonly hasRecording: boolean;
    readonly recordedEndMs: number | undefined;
    readonly onLive: () => void;
  }) {
    this.#now = options.now;
    this.#recordedEndMs = options.recordedEndMs;
    this.#onLive = options.onLive;
    if (!options.hasRecording) this.#offsetMs = 0;
  }

  /** Returns the live time. */
  now(): number {
    const liveMs = this.#now() - this.#pausedMs;
    if (this.#offsetMs === undefined) {
      this.#offsetMs = this.#recordedEndMs === undefined ? 0 : this.#recordedEndMs - liveMs;
      this.#onLive();
    }
    return liveMs + this.#offsetMs;
  }

  /** Starts live time, unless the recording's end has already started it. */
  start(): void {
    if (this.#offsetMs === undefined) this.now();
  }

  /** Stops the time until `resume()`. */
  pause(): void {
    this.#pausedSinceMs ??= this.#now();
  }

  resume(): void {
    if (this.#pausedSinceMs === undefined) return;
    this.#pausedMs += this.#now() - this.#pausedSinceMs;
    this.#pausedSinceMs = undefined;
  }
}
