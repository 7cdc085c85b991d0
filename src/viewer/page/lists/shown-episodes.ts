import type { EpisodeEntry } from "../../model/episode-entry.ts";
import { listFields, readFilter, sortEpisodes } from "../../model/lists/episode-filter.ts";
import { groupEpisodes, sortGroups, type GroupEntry } from "../../model/lists/group-entry.ts";
import type { ListField } from "../../model/lists/list-fields.ts";
import type { Route } from "../../model/route.ts";
import { componentNames } from "../../model/lists/run-figures.ts";
import type { EpisodeList, ViewerApp } from "../viewer-app.ts";

type RunRoute = Extract<Route, { page: "run" }>;

/** The list of a run after its filter, search and order. */
export interface ShownEpisodes {
  readonly episodes: readonly EpisodeEntry[];
  /** The episodes' groups, in the order of the list of groups. */
  readonly groups: readonly GroupEntry[];
  readonly fields: readonly ListField<EpisodeEntry>[];
  /** The words of the filter that could not be read. */
  readonly problems: readonly string[];
  /** The hits of the search by episode. Absent without a search, and until it has ended. */
  readonly hits?: ReadonlyMap<string, number>;
}

/** Returns the order of a list: that of the route, or the default. */
export function orderOf({ order }: Pick<RunRoute, "order">): string {
  return order === "" ? "task" : order;
}

/** Returns the episodes that match the route's filter and search, in its order. */
export function shownEpisodes(app: ViewerApp, route: RunRoute, list: EpisodeList): ShownEpisodes {
  const hits = app.hits(route, list.entries.length);
  const key = [route.run, route.view, route.filter, route.order].join("\n");
  if (cached?.list === list && cached.key === key && cached.shown.hits === hits) {
    return cached.shown;
  }
  const shown = findShown(route, list, hits);
  cached = { list, key, shown };
  return shown;
}

function findShown(
  { filter, view, ...route }: RunRoute,
  { entries }: EpisodeList,
  hits: ReadonlyMap<string, number> | undefined,
): ShownEpisodes {
  const fields = listFields(componentNames(entries), hits);
  const { test, problems } = readFilter(filter, fields);
  const kept = entries.filter(
    (entry) => test(entry) && (hits === undefined || hits.has(entry.rolloutId)),
  );
  const order = orderOf(route);
  const isGrouped = view === "groups";
  return {
    episodes: isGrouped ? kept : sortEpisodes(kept, order, fields),
    groups: isGrouped ? sortGroups(groupEpisodes(kept), order) : [],
    fields,
    problems,
    ...(hits !== undefined && { hits }),
  };
}

/**
 * The result of the last call. Sorting ten thousand episodes takes a moment, and each redraw needs
 * them.
 */
let cached:
  | { readonly list: EpisodeList; readonly key: string; readonly shown: ShownEpisodes }
  | undefined;
