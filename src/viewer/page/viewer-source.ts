import type { ColumnName } from "../../columns/column-specs.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import type { AboutRun } from "../model/about-run.ts";
import type { EpisodeEntry, EpisodeVersions, RunFacts } from "../model/episode-entry.ts";
import type { LiveEntry, LiveEpisode } from "../model/live-episode.ts";
import type { RunOverview } from "../model/lists/run-figures.ts";
import type { RowColumns } from "../model/row-columns.ts";
import type { ColumnCheck, TokenColumn } from "../model/side-columns.ts";
import type { RowBranch } from "../model/row-tree.ts";
import type { TeacherToken } from "../model/teacher-token.ts";

/** One page of a run's list of episodes. */
export interface EpisodePage {
  readonly facts: RunFacts;
  /** The index of the first entry. Earlier entries, if the page has them, stay valid. */
  readonly start: number;
  readonly entries: readonly EpisodeEntry[];
  /** The running episodes. */
  readonly running: readonly LiveEntry[];
}

/** The runs that can be viewed. */
export interface RunsPage {
  readonly runs: readonly RunOverview[];
  /** The runs' folders that cannot be read. */
  readonly unreadable: readonly { readonly dir: string; readonly problem: string }[];
}

/** The address of an episode. */
export interface EpisodePlace {
  readonly run: string;
  readonly episode: string;
}

/** The address of a side column of an episode's row. */
export interface ColumnPlace {
  readonly row: number;
  readonly name: ColumnName;
}

/** The source of the page's data: a server on this machine, or the page's own file. */
export interface ViewerSource {
  /** True if more data may arrive. */
  readonly isLive: boolean;
  /** The episode with which the page begins. Absent if it begins with a list. */
  readonly opens?: EpisodePlace;
  runs(): Promise<RunsPage>;
  /** Returns a run's settings and the summary that it wrote. */
  about(run: string): Promise<AboutRun>;
  /** Returns the episodes from index `from` on, or all of them if the generation has changed. */
  episodes(
    run: string,
    known: { readonly generation: number; readonly from: number },
  ): Promise<EpisodePage>;
  versions(run: string): Promise<EpisodeVersions>;
  /** Returns the number of occurrences of a text in each episode that contains it. */
  search(run: string, text: string): Promise<Readonly<Record<string, number>>>;
  /** Returns a finished episode, or the known part of a running one. */
  episode(place: EpisodePlace): Promise<EpisodeRow | LiveEpisode>;
  /** The episode's training rows, as branches of a tree. */
  branches(place: EpisodePlace): Promise<readonly RowBranch[]>;
  row(place: EpisodePlace, row: number): Promise<RowColumns>;
  /** Returns the row's recomputed logprobs, by token index. Absent without an engine. */
  rescored?(place: EpisodePlace, row: number): Promise<Float64Array>;
  /**
   * Returns the values of a side column for a token that has a row in it. Absent if the source has no bytes of columns.
   */
  tokenColumn?(place: EpisodePlace, column: ColumnPlace, token: number): Promise<TokenColumn>;
  /** Compares the bytes of a row's side column with their hashes. Absent as `tokenColumn()` is. */
  columnCheck?(place: EpisodePlace, column: ColumnPlace): Promise<ColumnCheck>;
  /** Returns the columns of the run's teachers for a token. Absent as `tokenColumn()` is. */
  teacherToken?(place: EpisodePlace, row: number, token: number): Promise<readonly TeacherToken[]>;
  /** Returns the row's line in the file. Absent if the file is not available. */
  rowLine?(place: EpisodePlace, row: number): Promise<Blob>;
}
