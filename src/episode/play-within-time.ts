import type { Engine } from "../engine/engine.ts";
import { passOn } from "../engine/pass-on.ts";
import { RolloutError } from "../errors.ts";
import { systemClock } from "../async/clock.ts";
import { startDeadline, type Deadline } from "../async/deadline.ts";
import { onAbort } from "../async/on-abort.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
import type { EpisodeLimits } from "./limits.ts";

/** The result of an interrupted play that returned no episode in time. */
export const left = Symbol("left");

/**
 * Returns the longest time of a play that keeps the episode's limits, in milliseconds: the episode's time, a turn of an
 * engine that cannot stop early, the score, and the time to leave.
 */
export function longestPlayMs(limits: EpisodeLimits): number {
  const { episodeTimeoutMs, engineTimeoutMs, scoreTimeoutMs } = limits;
  return episodeTimeoutMs + engineTimeoutMs + scoreTimeoutMs + leaveMs(limits);
}

/** Returns the time that an interrupted play has to return its episode, in milliseconds. */
export function leaveMs({ graceTimeoutMs, toolTimeoutMs, userTimeoutMs }: EpisodeLimits): number {
  // Three calls each: the user is opened, answers and reports its cost; the world is opened, called and disposed of.
  return graceTimeoutMs + 3 * (toolTimeoutMs + userTimeoutMs);
}

/**
 * Runs a custom player with a time limit, and a shorter one after an interruption. Time in which the policy is paused
 * does not count. When a limit ends, `signal` aborts.
 *
 * @param ms - Time limit without an interruption, in milliseconds. Default `longestPlayMs()`.
 * @returns the player's result, or `left` if it was interrupted and did not answer in time.
 * @throws RolloutError `agent/timeout` if the time is over, the signal's reason if it aborts, and any error of the
 *   player.
 */
export async function playWithinTime(
  play: PlayAttempt,
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  { signal, interrupt, ...options }: Parameters<PlayAttempt>[2],
  ms = longestPlayMs(setup.limits),
): Promise<unknown> {
  const { agent, clock = systemClock, limits } = setup;
  signal.throwIfAborted();
  const stopped = new AbortController();
  using time = startDeadline({ ms, parents: [signal, stopped.signal], clock });
  const pausing = { ...setup, engine: pausingEngine(setup.engine, time) };
  let cancelTimer = (): void => {};
  let letGo = (): void => {};
  try {
    return await new Promise<unknown>((resolve, reject) => {
      time.signal.addEventListener("abort", () => {
        const message =
          `Cannot play ${assignment.rolloutId} as agent ${agent.strategy}: no answer within ${ms} ms, ` +
          "expected an episode (a forgotten resolve in its play(), or one that heeds no signal?)";
        const late = new RolloutError("agent/timeout", message, { retryable: true });
        reject(time.expired ? late : (time.signal.reason as Error));
      });
      const leave = (): void => {
        cancelTimer = clock.after(leaveMs(limits), () => {
          resolve(left);
          stopped.abort(new DOMException("The play is not waited for any more", "AbortError"));
        });
      };
      if (interrupt?.aborted === true) leave();
      else if (interrupt) letGo = onAbort(interrupt, leave);
      const playing = play(assignment, pausing, {
        ...options,
        signal: time.signal,
        ...(interrupt && { interrupt }),
      });
      // The player may return a plain value.
      Promise.resolve(playing).then(resolve, reject);
    });
  } finally {
    cancelTimer();
    letGo();
  }
}

/** Wraps the engine so that the time is paused while the policy is paused for any call. */
function pausingEngine(inner: Engine, time: Pick<Deadline, "pause" | "resume">): Engine {
  let pausedCount = 0;
  const hold = (isHeld: boolean): void => {
    pausedCount += isHeld ? 1 : -1;
    if (pausedCount > 0) time.pause();
    else time.resume();
  };
  return {
    ...passOn(inner),
    async generate(request, options) {
      let wasPaused = false;
      const onHeld = (isHeld: boolean): void => {
        options?.onHeld?.(isHeld);
        if (isHeld === wasPaused) return;
        wasPaused = isHeld;
        hold(isHeld);
      };
      try {
        return await inner.generate(request, { ...options, onHeld });
      } finally {
        // The end of the call also ends a pause that the engine did not end itself.
        if (wasPaused) hold(false);
      }
    },
  };
}
