import { html, nothing, type TemplateResult } from "lit/html.js";
import { linkTo, type Route } from "../../model/route.ts";
import { episodeRoute } from "../viewer-app.ts";

type RunRoute = Extract<Route, { page: "run" }>;

/** Returns the route to the same list as episodes. Groups have another order. */
export function episodesOf(list: RunRoute): RunRoute {
  return list.view === "episodes" ? list : otherView(list, "episodes");
}

/** Returns the route to the same list as groups. Episodes have another order. */
export function groupsOf(list: RunRoute): RunRoute {
  return list.view === "groups" ? list : otherView(list, "groups");
}

function otherView({ at: _at, ...rest }: RunRoute, view: RunRoute["view"]): RunRoute {
  return { ...rest, view, order: "" };
}

/** Returns the route to an episode of a list. The text that the list was searched for is marked in it. */
export function foundRoute({ run, search }: RunRoute, episode: string): Route {
  return { ...episodeRoute(run, episode), ...(search !== "" && { find: search }) };
}

/** Renders the links between the pages of a run. */
export function runTabs(list: RunRoute, shown: RunRoute["view"] | "about" = list.view) {
  const tab = (name: string, label: string, route: Route, title: string): TemplateResult =>
    html`<a
      class="choice"
      href=${linkTo(route)}
      title=${title}
      aria-current=${name === shown ? "page" : nothing}
      >${label}</a
    >`;
  const about = { page: "about", run: list.run } as const;
  return html`<nav class="choices" aria-label="pages of the run">
    ${tab("episodes", "Episodes", episodesOf(list), "all attempts (g)")}
    ${tab("groups", "Groups", groupsOf(list), "the attempts at each task (g)")}
    ${tab("about", "Settings and metrics", about, "how it was started, and its figures")}
  </nav>`;
}
