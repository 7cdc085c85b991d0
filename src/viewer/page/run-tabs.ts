import { html, nothing, type TemplateResult } from "lit/html.js";
import { linkTo, type Route } from "../model/route.ts";
import { runRoute } from "./viewer-app.ts";

type RunRoute = Extract<Route, { page: "run" }>;

/** Renders the links between the pages of a run. */
export function runTabs(shown: RunRoute | { readonly page: "about"; readonly run: string }) {
  const list = shown.page === "run" ? shown : runRoute(shown.run);
  const { at: _at, ...rest } = list;
  const view = shown.page === "run" ? shown.view : "about";
  const tab = (name: string, label: string, route: Route, title: string): TemplateResult =>
    html`<a
      class="choice"
      href=${linkTo(route)}
      title=${title}
      aria-current=${name === view ? "page" : nothing}
      >${label}</a
    >`;
  return html`<nav class="choices" aria-label="pages of the run">
    ${tab("episodes", "Episodes", { ...rest, view: "episodes" }, "all attempts (g)")}
    ${tab("groups", "Groups", { ...rest, view: "groups" }, "the attempts at each task (g)")}
    ${tab("about", "Settings and metrics", { page: "about", run: shown.run }, "how it was started, and its figures")}
  </nav>`;
}
