import type { Route } from "./route.ts";
import { visibleText } from "./visible-text.ts";

/** Returns the title of a page. The title begins with the part that differs from other pages. */
export function pageTitle(route: Route): string {
  const parts = partsOf(route).map(visibleText);
  return [...parts, "Turnwright"].join(" · ");
}

function partsOf(route: Route): readonly string[] {
  switch (route.page) {
    case "runs":
      return ["Runs"];
    case "run":
      return route.view === "groups" ? ["groups", route.run] : [route.run];
    case "about":
      return ["settings and metrics", route.run];
    case "episode":
      return [route.episode, route.run];
    case "group":
      return [`attempts at ${route.group}`, route.run];
    case "compare":
      return [`${route.run} and ${route.other}`];
  }
}
