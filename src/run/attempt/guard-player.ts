import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import { attribute } from "../../episode/boundary.ts";
import { takeEpisode, withoutEpisode } from "../../episode/play-foreign.ts";
import { left, leaveMs, playWithinTime } from "../../episode/play-within-time.ts";
import { unplayedEpisode } from "../../episode/unplayed-episode.ts";
import { InvariantError, RolloutError, UsageError } from "../../errors.ts";
import { PlaybackStop } from "../../outside.ts";
import type { AttemptPlayer, AttemptPlayOptions } from "./attempt-player.ts";
import { isPacked } from "../packed/packed-episode.ts";
import type { Listeners } from "../schedule/listeners.ts";

/**
 * Wraps a caller's player to contain its errors. An error, or a result that is not an episode of the
 * attempt, fails only that attempt (`internal/exception`). A play may take any time. After an interruption, it has as
 * long as an episode needs to end; after a cancellation, it is not awaited. After an interruption, an error or a
 * missing episode does not count as a failure: the attempt is `aborted`. Events of an abandoned play are ignored.
 */
export function guardPlayer(player: AttemptPlayer, listeners: Listeners): AttemptPlayer {
  return {
    play: async (assignment, setup, options) => await play(player, assignment, setup, options),
    landed: (place) =>
      listeners.call(`report to the player that ${place.rolloutId} has landed`, () =>
        player.landed?.(place),
      ),
    pause: async (mode) =>
      await listeners.ask(`pause the player (${mode})`, () => player.pause?.(mode)),
    resume: () => listeners.call("let the player resume", () => player.resume?.()),
    announcePolicy: (version) =>
      listeners.call(`announce version ${version} of the policy to the player`, () =>
        player.announcePolicy?.(version),
      ),
  };
}

async function play(
  player: AttemptPlayer,
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  options: AttemptPlayOptions,
): Promise<Episode> {
  const { signal, interrupt, onInputs } = options;
  const startedAtMs = setup.now();
  const events = new EventGate();
  const guarded: EpisodeSetup = {
    ...setup,
    ...(setup.onTurn && { onTurn: events.whileOpen(setup.onTurn) }),
    ...(setup.onTrouble && { onTrouble: events.whileOpen(setup.onTrouble) }),
  };
  const about = { ...options, ...(onInputs && { onInputs: events.whileOpen(onInputs) }) };
  try {
    const episode = await playWithinTime(
      async (given, held, signals) => await player.play(given, held, { ...about, ...signals }),
      assignment,
      guarded,
      { signal, ...(interrupt && { interrupt }) },
      Infinity,
    );
    if (episode === left) {
      setup.onTrouble?.(noAnswer(assignment, setup));
      return unplayedEpisode(assignment, setup);
    }
    // The process that played a packed episode has checked it.
    if (isPacked(episode)) return episode;
    return takeEpisode(episode, assignment, { setup, options });
  } catch (error) {
    signal.throwIfAborted();
    const failure = toFailure(error, assignment, options);
    return withoutEpisode(failure, assignment, { setup, startedAtMs, interrupt, thrown: error });
  } finally {
    events.close();
  }
}

/** Passes on events until the gate is closed. */
class EventGate {
  #isClosed = false;

  whileOpen<Event>(listener: (event: Event) => void): (event: Event) => void {
    return (event) => {
      if (!this.#isClosed) listener(event);
    };
  }

  close(): void {
    this.#isClosed = true;
  }
}

/**
 * Converts an error of the player to a failure of the attempt.
 *
 * @throws errors that the run handles itself, and errors of this package.
 */
function toFailure(
  error: unknown,
  { rolloutId }: EpisodeAssignment,
  options: AttemptPlayOptions,
): RolloutError {
  if (isForRun(error, options)) throw error;
  const what = `play ${rolloutId} by the run's player`;
  const attributed = attribute(error, { party: "internal", what });
  if (attributed instanceof InvariantError) throw attributed;
  return attributed;
}

/** True for errors that end the run, and for the error of a recording that cannot be resumed. */
function isForRun(error: unknown, { past }: AttemptPlayOptions): boolean {
  try {
    return error instanceof UsageError || (past !== undefined && error instanceof PlaybackStop);
  } catch {
    // The thrown value may even fail at `instanceof`.
    return false;
  }
}

function noAnswer({ rolloutId }: EpisodeAssignment, { limits }: EpisodeSetup): RolloutError {
  return new RolloutError(
    "internal/timeout",
    `Cannot leave ${rolloutId} with what the run's player has: no answer within ${leaveMs(limits)} ms of the ` +
      "interruption, expected its episode, aborted (a play() that does not heed options.interrupt?)",
    { retryable: true },
  );
}
