import { withResolvers, type Resolvers } from "../async/with-resolvers.ts";
import { withDeadline } from "../async/deadline.ts";
import type { Clock } from "../async/clock.ts";
import { ClientError } from "./client-error.ts";

/** Makes requests wait while the policy's weights are exchanged. */
export class PauseGate {
  readonly #holdMs: number;
  readonly #clock: Clock;
  #paused: Resolvers<void> | undefined;

  /** @param holdMs - Maximum wait of a request in milliseconds, after which it is refused. */
  constructor(holdMs: number, clock: Clock) {
    this.#holdMs = holdMs;
    this.#clock = clock;
  }

  get isPaused(): boolean {
    return this.#paused !== undefined;
  }

  pause(): void {
    this.#paused ??= withResolvers();
  }

  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
  }

  /**
   * Resolves when the gateway is not paused.
   *
   * @throws ClientError `overloaded` if the wait exceeds the limit.
   */
  async whenOpen(signal: AbortSignal): Promise<void> {
    const paused = this.#paused;
    if (paused === undefined) return;
    await withDeadline(() => paused.promise, {
      ms: this.#holdMs,
      clock: this.#clock,
      signal,
      onLate: () => {
        const message = "The policy's weights are being exchanged";
        throw new ClientError("overloaded", message, { retryAfterS: 5 });
      },
    });
  }
}
