import type { ColumnParts } from "../../columns/column-part.ts";
import type { Episode, TurnRecord } from "../../episode/episode.ts";
import type { EncodedLine } from "../disk/encode-line.ts";
import type { VersionFacts } from "../policy/version-facts.ts";

/** The counts and times of a turn that a run adds up. JSON-able. */
export type TurnTotals = Pick<
  TurnRecord,
  "turnIndex" | "sampledTokenCount" | "engineMs" | "userMs" | "environmentMs"
>;

/** A problem that did not end an episode, as `events.jsonl` describes it. JSON-able. */
export interface DescribedTrouble {
  readonly code: string;
  readonly message: string;
  readonly stack: string;
}

/** Recorded inputs as complete lines of `recording.jsonl`. */
export interface PackedRecording {
  /** The lines in UTF-8, each with its line feed. */
  readonly bytes: Buffer;
  /** The number of the attempt's lines with inputs, including lines before these. */
  readonly partCount: number;
  /** The hash of the last of these lines. */
  readonly lastHash: string;
}

/**
 * The lines of an episode's files, as the process that played the episode made and checked them. The run appends these
 * bytes and does not parse them.
 */
export interface PackedEpisode {
  /** The training rows, in order. */
  readonly samples: readonly EncodedLine[];
  /** The line of `episodes.jsonl`. */
  readonly line: EncodedLine;
  readonly recording: PackedRecording;
  readonly versions: VersionFacts;
  readonly turns: readonly TurnTotals[];
  readonly troubles: readonly DescribedTrouble[];
  /** The parts of side columns that the lines name, each once. Absent if the lines name none. */
  readonly columns?: ColumnParts;
  /**
   * Releases the memory of the lines. The lines and the long members of the episode cannot be read
   * afterwards.
   */
  readonly release: () => void;
}

const packedEpisodes = new WeakMap<Episode, PackedEpisode>();

/** Remembers the lines of an episode. A copy of the episode has none, because it may differ. */
export function attachPacked(episode: Episode, packed: PackedEpisode): void {
  packedEpisodes.set(episode, packed);
}

/** Returns the lines of an episode that another process played; `undefined` if this process played it. */
export function packedOf(episode: Episode): PackedEpisode | undefined {
  return packedEpisodes.get(episode);
}

/** True if a player's result is an episode with its lines. */
export function isPacked(value: unknown): value is Episode {
  return typeof value === "object" && value !== null && packedEpisodes.has(value as Episode);
}

/** Returns the totals of an episode's turns. Does not parse a packed episode. */
export function turnTotalsOf(episode: Pick<Episode, "turns">): readonly TurnTotals[] {
  return packedEpisodes.get(episode as Episode)?.turns ?? episode.turns;
}
