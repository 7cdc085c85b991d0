import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import { playForeign } from "../../episode/play-foreign.ts";
import { playEpisode, type PlayEpisodeOptions } from "../../episode/play-episode.ts";
import type { UpdateMode } from "../policy/policy-gate.ts";

/** Which play of which attempt. */
export interface PlayPlace {
  readonly rolloutId: string;
  /** Counts plays after failures, from 1. */
  readonly attempt: number;
}

/** What a player is told besides who plays and how. */
export interface AttemptPlayOptions extends Omit<PlayEpisodeOptions, "atEnd" | "scoreAnew"> {
  /** Attempts of its group that have not ended, this one included. */
  readonly groupLeft: number;
}

/**
 * Who plays the attempts of a run. The run decides which are played, writes what comes of them and is
 * the only one to write its folder, whoever plays them. Where `landed()` throws, the run ends with a UsageError
 * that names it; where `pause()`, `resume()` or `announcePolicy()` does, whoever asked the run for that is told.
 */
export interface AttemptPlayer {
  /**
   * Plays an attempt once. Ends and throws as `playEpisode()` does: where it throws otherwise, or returns what is no
   * episode of this attempt, or none that `verify` would find sound, that attempt has failed (`internal/exception`).
   * Only a UsageError ends the run. It may take any time until `interrupt` is aborted, and then as long as an episode
   * takes to leave: the attempt is `aborted` with nothing then, as it is where it throws once that is aborted, such
   * as the reason of `interrupt`, or returns what is no episode. Nobody waits for it once `signal` is aborted.
   */
  play(
    assignment: EpisodeAssignment,
    setup: EpisodeSetup,
    options: AttemptPlayOptions,
  ): Promise<Episode>;
  /** Told once what came of a play cannot be lost any more: nobody will ask for it again. */
  landed?(place: PlayPlace): void;
  /** Lets nothing be sampled elsewhere until `resume()`; resolves when nothing is, except with `finish`. */
  pause?(mode: UpdateMode): Promise<void>;
  resume?(): void;
  /** Told which version of the policy samples from now on. */
  announcePolicy?(version: number): void;
}

/** Plays attempts in this process. */
export const playHere: AttemptPlayer = {
  play: async (assignment, setup, options) => await playAttempt(assignment, setup, options),
};

/**
 * Plays an attempt in this process, whoever asked for it: by the setup's own `play` where it has one, of which nothing
 * is recorded and which goes on from nothing, else by `playEpisode()`.
 */
export async function playAttempt(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  options: Omit<AttemptPlayOptions, "groupLeft">,
): Promise<Episode> {
  return setup.play === undefined
    ? await playEpisode(assignment, setup, options)
    : await playForeign(setup.play, assignment, setup, options);
}
