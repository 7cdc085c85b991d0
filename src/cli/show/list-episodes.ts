import { UsageError } from "../../errors.ts";
import type { StoredRun } from "../../report/read-run.ts";
import { listEpisode } from "../../report/show-episode.ts";
import { isSuccessful } from "../../report/trial-result.ts";
import { takeTurn } from "../../async/take-turn.ts";
import type { EpisodeEntry } from "../../viewer/model/episode-entry.ts";
import {
  episodeFields,
  listFields,
  readFilter,
  sortEpisodes,
} from "../../viewer/model/lists/episode-filter.ts";
import type { ListField } from "../../viewer/model/lists/list-fields.ts";
import { toEpisodeEntry } from "../../viewer/source/episode-head.ts";

/** The choice and the order of the episodes in a list. */
export interface ListChoice {
  /** A filter as in the viewer, such as `reward<1 turns>=10`. Absent: all episodes. */
  readonly filter?: string;
  /** A field of the filter, with a leading `-` in descending order. Absent: the order in the file. */
  readonly sort?: string;
  /** True for only those that are not a success. Default false. */
  readonly failed?: boolean;
}

/** Fields with values from another file of the run, which the command line does not read. */
const elsewhere: ReadonlySet<string> = new Set(["versions", "stale"]);

const fixedFields = episodeFields.filter(({ name }) => !elsewhere.has(name));

/** Names of the fields by which a list can be filtered and sorted, without the components of rewards. */
export const listFieldNames: readonly string[] = fixedFields.map(({ name }) => name);

/**
 * Yields a line for each chosen episode of a run. Keeps one line of each in memory.
 *
 * @throws UsageError for a filter that cannot be read and for an order by an unknown field.
 */
export async function* listEpisodes(
  run: StoredRun,
  { filter = "", sort, failed = false }: ListChoice,
): AsyncGenerator<string> {
  const lines = new Map<EpisodeEntry, string>();
  const components = new Set<string>();
  let order = 0;
  for await (const row of run.rows()) {
    await takeTurn();
    const entry = toEpisodeEntry(row, order++);
    if (entry === undefined || (failed && isSuccessful(row))) continue;
    for (const name of Object.keys(entry.components ?? {})) components.add(name);
    lines.set({ ...entry, rowCount: row.sampleHashes.length }, listEpisode(row));
  }
  const fields = listFields([...components]).filter(({ name }) => !elsewhere.has(name));
  const { test, problems } = readFilter(filter, fields);
  if (problems.length > 0) throw unreadable("filter", filter, problems.join("; "), fields);
  if (sort !== undefined && !fields.some(({ name }) => name === sort.replace(/^-/, ""))) {
    throw unreadable("sort", sort, `there is no “${sort.replace(/^-/, "")}”`, fields);
  }
  const chosen = [...lines.keys()].filter(test);
  const sorted = sort === undefined ? chosen : sortEpisodes(chosen, sort, fields);
  for (const entry of sorted) yield lines.get(entry)!;
}

function unreadable(
  flag: string,
  value: string,
  problem: string,
  fields: readonly ListField<EpisodeEntry>[],
): UsageError {
  const names = fields.map(({ name }) => name).join(", ");
  return new UsageError(`Cannot use --${flag} ${value}: ${problem}; the fields are ${names}`);
}
