import type { Engine } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { systemClock } from "../async/clock.ts";
import { startDeadline, type Deadline } from "../async/deadline.ts";
import { onAbort } from "../async/on-abort.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
import type { EpisodeLimits } from "./limits.ts";

/** The answer of a play that was interrupted and gave none. */
export const left = Symbol("left");

/**
 * How long a play may take whose player keeps the limits of an episode, milliseconds: the episode's own
 * time, a turn of an engine that cannot be told that it is over, and what is asked of others before it and
 * behind it.
 */
export function longestPlayMs(limits: EpisodeLimits): number {
  const { episodeTimeoutMs, engineTimeoutMs, scoreTimeoutMs } = limits;
  return episodeTimeoutMs + engineTimeoutMs + scoreTimeoutMs + leaveMs(limits);
}

/** How long a play that is interrupted may take to hand over what it has, milliseconds. */
export function leaveMs({ graceTimeoutMs, toolTimeoutMs, userTimeoutMs }: EpisodeLimits): number {
  // A user is opened, heard and asked what it cost; a world is opened, called and disposed of.
  return graceTimeoutMs + 3 * (toolTimeoutMs + userTimeoutMs);
}

/**
 * Waits for a player who may be anybody's: no longer than a play can take that keeps the limits, and, once it
 * is interrupted, than such a one needs to leave. Time for which the policy is held is not counted. Whoever is
 * not waited for any more finds `signal` aborted.
 *
 * @param ms - How long is waited for it while nobody interrupts it. Default `longestPlayMs()`.
 * @returns what it answered, `left` where it was interrupted and did not answer.
 * @throws RolloutError `agent/timeout` where its time is over, the signal's reason where that is aborted, and
 *   whatever the play throws.
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
  const behind = new AbortController();
  using time = startDeadline({ ms, parents: [signal, behind.signal], clock });
  const held = { ...setup, engine: heldEngine(setup.engine, time) };
  let callOff = (): void => {};
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
        callOff = clock.after(leaveMs(limits), () => {
          resolve(left);
          behind.abort(new DOMException("The play is not waited for any more", "AbortError"));
        });
      };
      if (interrupt?.aborted === true) leave();
      else if (interrupt) letGo = onAbort(interrupt, leave);
      const playing = play(assignment, held, {
        ...options,
        signal: time.signal,
        ...(interrupt && { interrupt }),
      });
      // It may be no promise.
      Promise.resolve(playing).then(resolve, reject);
    });
  } finally {
    callOff();
    letGo();
  }
}

/** The engine, with a time that stands still as long as any call is held by the policy's owner. */
function heldEngine(inner: Engine, time: Pick<Deadline, "pause" | "resume">): Engine {
  let heldCount = 0;
  const hold = (isHeld: boolean): void => {
    heldCount += isHeld ? 1 : -1;
    if (heldCount > 0) time.pause();
    else time.resume();
  };
  return {
    kind: inner.kind,
    async generate(request, options) {
      let wasHeld = false;
      const onHeld = (isHeld: boolean): void => {
        options?.onHeld?.(isHeld);
        if (isHeld === wasHeld) return;
        wasHeld = isHeld;
        hold(isHeld);
      };
      try {
        return await inner.generate(request, { ...options, onHeld });
      } finally {
        // An engine that never said that it goes on holds nothing but its own call.
        if (wasHeld) hold(false);
      }
    },
    ...(inner.score && { score: async (...call) => await inner.score!(...call) }),
    describe: async (options) => await inner.describe(options),
    ...(inner.load && { load: async (options) => await inner.load!(options) }),
    close: async () => await inner.close(),
  };
}
