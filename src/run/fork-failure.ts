import { AnswerDivergence } from "../episode/input-player.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { RolloutError, type Party } from "../errors.ts";
import { PlaybackStop } from "../outside.ts";
import type { ForkPlace } from "../trajectory/sample.ts";

/** A playback that stopped in another process, which says who is to blame. */
export class PlaybackStopElsewhere extends PlaybackStop {
  readonly party: Party;

  constructor(message: string, party: Party) {
    super(message);
    this.party = party;
  }
}

/** Who keeps an episode from being played from its recording. */
export function whoStops(
  stop: PlaybackStop,
  { environment, user }: Pick<EpisodeSetup, "environment" | "user">,
): Party {
  if (stop instanceof AnswerDivergence || stop instanceof PlaybackStopElsewhere) return stop.party;
  if (environment.repeatable !== true) return "environment";
  // What the policy is asked with, and what is read of its turns, is the agent's.
  return user.repeatable === true ? "agent" : "user";
}

/**
 * What a fork shares cannot be brought back: whoever was to do the same again did not. That is the fork's
 * failure, and takes no other attempt with it.
 */
export function forkFailure(
  stop: PlaybackStop,
  { rolloutId, forkedFrom }: { readonly rolloutId: string; readonly forkedFrom: ForkPlace },
  setup: Pick<EpisodeSetup, "environment" | "user">,
): RolloutError {
  const { rolloutId: from, turnIndex } = forkedFrom;
  const message = `Cannot part ${rolloutId} from ${from} with turn ${turnIndex}: ${stop.message}`;
  return new RolloutError(`${whoStops(stop, setup)}/not-repeatable`, message, { cause: stop });
}
