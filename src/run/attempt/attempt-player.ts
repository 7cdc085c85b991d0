import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import { playForeign } from "../../episode/play-foreign.ts";
import { playEpisode, type PlayEpisodeOptions } from "../../episode/play-episode.ts";
import type { RecordingPoint } from "../recording/recording-line.ts";
import type { UpdateMode } from "../policy/policy-gate.ts";

/** One play of an attempt. */
export interface PlayPlace {
  readonly rolloutId: string;
  /** The number of the play, from 1. Another play follows a failed one. */
  readonly attempt: number;
}

/** Options of a play. */
export interface AttemptPlayOptions extends Omit<PlayEpisodeOptions, "atEnd" | "scoreAnew"> {
  /** The number of attempts in the group that have not ended, including this one. */
  readonly groupLeft: number;
  /** The point in the run's recording at which the lines of this play follow. Absent if it is not recorded. */
  readonly recordedAt?: RecordingPoint;
}

/**
 * Plays the attempts of a run, for example in other processes. The run decides which attempts are played, and only the
 * run writes its folder. If `landed()` throws, the run ends with a UsageError that names it. Errors of `pause()`,
 * `resume()` and `announcePolicy()` are thrown to the caller of the run's method.
 */
export interface AttemptPlayer {
  /**
   * Plays an attempt once, and ends and throws like `playEpisode()`. The attempt fails (`internal/exception`) if this
   * throws any other error, or returns anything but a valid episode of this attempt. Only a UsageError ends the run.
   *
   * A play may take any time until `interrupt` aborts, and after that as long as an episode needs to end. If it takes
   * longer, throws, or returns no episode after the abort, the attempt is `aborted` without an episode. The run does
   * not wait after `signal` has aborted.
   */
  play(
    assignment: EpisodeAssignment,
    setup: EpisodeSetup,
    options: AttemptPlayOptions,
  ): Promise<Episode>;
  /** Called once when the result of a play is written, so that the run does not need the play any more. */
  landed?(place: PlayPlace): void;
  /** Blocks sampling until `resume()`. Resolves when nothing is sampled; with `finish`, immediately. */
  pause?(mode: UpdateMode): Promise<void>;
  resume?(): void;
  /** Called with the policy version that samples from now on. */
  announcePolicy?(version: number): void;
}

/** Plays attempts in this process. */
export const playHere: AttemptPlayer = {
  play: async (assignment, setup, options) => await playAttempt(assignment, setup, options),
};

/**
 * Plays an attempt in this process: with the setup's own `play` if it has one (which is not recorded, and not resumed),
 * otherwise with `playEpisode()`.
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
