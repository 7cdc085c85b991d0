import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import type { EpisodeEntry, EpisodeVersions, RunFacts } from "../model/episode-entry.ts";
import type { LiveEntry, LiveEpisode } from "../model/live-episode.ts";
import type { RowColumns } from "../model/row-columns.ts";
import type { RowBranch } from "../model/row-tree.ts";

/** What was read of a run's list. */
export interface EpisodePage {
  readonly facts: RunFacts;
  /** Place of the first of the entries; what was read before it still holds. */
  readonly start: number;
  readonly entries: readonly EpisodeEntry[];
  /** Those that are being played. */
  readonly running: readonly LiveEntry[];
}

/** Names an episode. */
export interface EpisodePlace {
  readonly run: string;
  readonly episode: string;
}

/** Where the page's data come from: a server on this machine, or the file that the page stands in. */
export interface ViewerSource {
  /** Whether more may come. */
  readonly isLive: boolean;
  runs(): Promise<readonly RunFacts[]>;
  /** The episodes from `from` on, where the run is still the one of that generation; else all. */
  episodes(
    run: string,
    known: { readonly generation: number; readonly from: number },
  ): Promise<EpisodePage>;
  versions(run: string): Promise<EpisodeVersions>;
  /** Episodes that hold a text, with how often. */
  search(run: string, text: string): Promise<Readonly<Record<string, number>>>;
  /** An episode that ended, or what is known of one that is being played. */
  episode(place: EpisodePlace): Promise<EpisodeRow | LiveEpisode>;
  /** The episode's training rows, as branches of a tree. */
  branches(place: EpisodePlace): Promise<readonly RowBranch[]>;
  row(place: EpisodePlace, row: number): Promise<RowColumns>;
  /** The row's logprobs computed again, by place; absent where no engine is at hand. */
  rescored?(place: EpisodePlace, row: number): Promise<Float64Array>;
  /** The row as it stands in the file; absent where that is not at hand. */
  rowLine?(place: EpisodePlace, row: number): Promise<Blob>;
}
