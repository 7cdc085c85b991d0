import type { Party } from "../../errors.ts";
import { PlaybackStop } from "../../outside.ts";

/** Thrown if an episode that is played from its recording does something that was not recorded. */
export class ReplayDivergence extends PlaybackStop {
  override readonly name = "ReplayDivergence";
  /** The party that behaves differently now, as far as the recording shows. */
  readonly party: Party;

  constructor(party: Party, message: string) {
    super(message);
    this.party = party;
  }
}

/** Thrown if the recording ends before the episode does and the episode cannot continue live. */
export class RecordingEnd extends PlaybackStop {
  override readonly name = "RecordingEnd";
}
