import type { StoredEpisodeRow } from "../../run/folder/episode-row.ts";
import type { AboutRun } from "./about-run.ts";
import type { EpisodeEntry, EpisodeVersions, RunFacts } from "./episode-entry.ts";

/** The data in an exported file. JSON-able. */
export interface InlinedRun {
  readonly facts: RunFacts;
  readonly about: AboutRun;
  /** The id of the only episode that was chosen. The page begins with it. Absent if there are several. */
  readonly opens?: string;
  readonly entries: readonly EpisodeEntry[];
  readonly versions: EpisodeVersions;
  readonly episodes: Readonly<Record<string, StoredEpisodeRow>>;
  /** Training rows as `encodeRow()` writes them, in base64. */
  readonly rows: Readonly<Record<string, readonly string[]>>;
}

/** The id of the element that holds the run as JSON. */
export const inlinedRunId = "turnwright-run";
