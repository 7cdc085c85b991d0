import type { Route } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import type { ViewerApp } from "./viewer-app.ts";

interface Searched {
  readonly route: Extract<Route, { page: "episode" }>;
  readonly view: RowView;
}

/** Searches the shown row, and moves to the first match. */
export function searchRow(app: ViewerApp, { route, view }: Searched, query: string): void {
  const result = view.search(query);
  app.search = { query, result, at: -1 };
  if (result.matches.length > 0) nextMatch(app, { route, view }, 1);
  app.update();
}

/** Moves to the next or the previous match. After the last one, moves to the first. */
export function nextMatch(app: ViewerApp, { route, view }: Searched, step: 1 | -1): void {
  const { search } = app;
  const count = search?.result.matches.length ?? 0;
  if (search === undefined || count === 0) return;
  const at = (Math.max(search.at, step === 1 ? -1 : 0) + step + count) % count;
  app.search = { ...search, at };
  const token = search.result.matches[at]!.start;
  const { turn: _turn, token: _token, ...rest } = route;
  const turn = view.turnAt(token)?.turnIndex;
  app.go({ ...rest, token, ...(turn !== undefined && { turn }) }, { replace: true });
}
