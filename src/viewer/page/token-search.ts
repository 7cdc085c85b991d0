import type { Route } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import type { ViewerApp } from "./viewer-app.ts";

interface Searched {
  readonly route: Extract<Route, { page: "episode" }>;
  readonly view: RowView;
}

/**
 * Searches the shown row for the text in the route, unless that was done before. Then moves to the first match, unless
 * the route names a token.
 */
export function searchRow(app: ViewerApp, { route, view }: Searched): ViewerApp["search"] {
  const { find = "", token } = route;
  if (find === "") app.search = undefined;
  else if (app.search?.query !== find || app.search.view !== view) {
    const result = view.search(find);
    app.search = { query: find, view, result, at: -1 };
    // A redraw does not change the route.
    if (token === undefined && result.matches.length > 0) {
      queueMicrotask(() => nextMatch(app, { route, view }, 1));
    }
  }
  return app.search;
}

/** Changes the text to search. */
export function changeSearch(app: ViewerApp, { route }: Searched, find: string): void {
  const { find: _find, token: _token, ...rest } = route;
  app.go({ ...rest, ...(find !== "" && { find }) }, { replace: true });
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
