import { groupEpisodes } from "../model/lists/group-entry.ts";
import { linkTo, type Route } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import { selectTurn, shownRow } from "./episode-page.ts";
import { comparedAttempt } from "./group-page.ts";
import { episodesOf, foundRoute, groupsOf } from "./lists/run-tabs.ts";
import { shownEpisodes } from "./lists/shown-episodes.ts";
import { nextMatch } from "./token-search.ts";
import { copyTurn, modesOf, selectToken } from "./token-panel.ts";
import { episodeRoute, episodeTabs, runsRoute, type ViewerApp } from "./viewer-app.ts";

/** The keys of each page, with their meanings. */
export const keyHelp: readonly {
  readonly title: string;
  readonly keys: readonly (readonly [key: string, meaning: string])[];
}[] = [
  {
    title: "In the list of a run",
    keys: [
      ["j k", "next, previous row"],
      ["Enter", "open it"],
      ["g", "episodes or groups"],
      ["/", "filter"],
    ],
  },
  {
    title: "In an episode",
    keys: [
      ["j k", "next, previous turn"],
      ["← →", "previous, next token"],
      ["n p", "next worst token, and back"],
      ["t", "tokens, time, reward details"],
      ["m", "colour by training, probability, policy version"],
      ["/", "search the conversation and the tokens, or ids after #; Enter for the next"],
      ["c i", "copy the turn's text, its ids"],
      ["[ ]", "previous, next attempt in the list, as it is filtered and sorted"],
      ["g", "all attempts side by side"],
    ],
  },
  {
    title: "Among attempts side by side",
    keys: [
      ["← →", "compare with the previous, the next attempt; j and k, too"],
      ["Enter", "open that attempt"],
    ],
  },
  {
    title: "Among runs, and in a comparison of two",
    keys: [
      ["j k", "next, previous row"],
      ["Enter", "open it; of a comparison the second run's attempts"],
      ["o", "in a comparison: by task, or the worst change first"],
    ],
  },
  {
    title: "Everywhere",
    keys: [
      ["Esc", "back: from a field, then to the list above"],
      ["?", "this list"],
    ],
  },
];

/** Handles a key. Leaves other keys to the browser. */
export function onKey(app: ViewerApp, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) {
    const isFind = event.key === "f" && !event.altKey;
    // The browser's own search finds only the visible lines.
    if (isFind && focusSearch()) event.preventDefault();
    return;
  }
  const target = event.target as HTMLElement;
  if (target.matches("input, textarea, select")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (event.key === "Enter" && target.matches("button, a, summary")) return;
  if (handle(app, event.key)) event.preventDefault();
}

function handle(app: ViewerApp, key: string): boolean {
  if (key === "?") {
    app.isHelpOpen = !app.isHelpOpen;
    app.update();
    return true;
  }
  if (key === "/") return focusSearch();
  if (key === "Escape") return goBack(app);
  const { route } = app;
  if (route.page === "run") return inRun(app, route, key);
  if (route.page === "episode") return inEpisode(app, route, key);
  if (route.page === "group") return inGroup(app, route, key);
  if (route.page === "compare" && key === "o") {
    app.go({ ...route, order: route.order === "" ? "change" : "" }, { replace: true });
    return true;
  }
  return focusLink(route.page === "runs" ? ".run-name" : ".second-run", stepOf(key));
}

function focusSearch(): boolean {
  const input = document.querySelector<HTMLInputElement>(".token-search, .filter-input");
  input?.focus();
  input?.select();
  return input !== null;
}

function goBack(app: ViewerApp): boolean {
  const { route } = app;
  if (app.isHelpOpen) {
    app.isHelpOpen = false;
    app.update();
  } else if (route.page === "episode") app.go({ ...app.lastList(route.run), at: route.episode });
  else if (route.page === "group") {
    app.go({ ...groupsOf(app.lastList(route.run)), at: route.group });
  } else if (route.page === "about") app.go(app.lastList(route.run));
  else if (route.page === "run" || route.page === "compare") app.go(runsRoute());
  else return false;
  return true;
}

/** Returns the direction of a key in a list: 1 for down, -1 for up, 0 for other keys. */
function stepOf(key: string): 1 | -1 | 0 {
  if (key === "j" || key === "ArrowDown") return 1;
  return key === "k" || key === "ArrowUp" ? -1 : 0;
}

/** Moves the focus to the next or previous link. Enter then opens it. */
function focusLink(selector: string, step: 1 | -1 | 0): boolean {
  const links = [...document.querySelectorAll<HTMLElement>(selector)];
  if (step === 0 || links.length === 0) return false;
  const row = document.activeElement?.closest("li, tr");
  const at = links.findIndex((link) => link.closest("li, tr") === row);
  links[Math.max(0, Math.min(links.length - 1, at + step))]!.focus();
  return true;
}

function inGroup(app: ViewerApp, route: Extract<Route, { page: "group" }>, key: string): boolean {
  const list = app.list(route.run);
  const entries = list.state === "ready" ? list.value.entries : [];
  const [group] = groupEpisodes(entries.filter(({ groupId }) => groupId === route.group));
  if (group === undefined) return false;
  const base = comparedAttempt(group, route);
  if (key === "Enter") {
    app.go(episodeRoute(route.run, base.rolloutId));
    return true;
  }
  const isNext = key === "j" || key === "ArrowRight";
  if (!isNext && key !== "k" && key !== "ArrowLeft") return false;
  const next = group.attempts[group.attempts.indexOf(base) + (isNext ? 1 : -1)];
  if (next === undefined) return true;
  app.go({ ...route, base: next.sampleIndex }, { replace: true });
  requestAnimationFrame(() =>
    document
      .querySelector(`[data-attempt="${next.sampleIndex}"]`)
      ?.scrollIntoView({ inline: "nearest", block: "nearest" }),
  );
  return true;
}

function inRun(app: ViewerApp, route: Extract<Route, { page: "run" }>, key: string): boolean {
  const list = app.list(route.run);
  if (list.state !== "ready") return false;
  const { episodes, groups } = shownEpisodes(app, route, list.value);
  const keys =
    route.view === "groups"
      ? groups.map(({ groupId }) => groupId)
      : episodes.map(({ rolloutId }) => rolloutId);
  const at = route.at === undefined ? -1 : keys.indexOf(route.at);
  const step = stepOf(key);
  if (step !== 0) {
    const next = keys[Math.max(0, Math.min(keys.length - 1, at + step))];
    if (next !== undefined) app.go({ ...route, at: next }, { replace: true });
    return true;
  }
  if (key === "Enter" && at >= 0) {
    if (route.view === "groups") {
      app.go({ page: "group", run: route.run, group: keys[at]!, base: 0 });
    } else app.go(foundRoute(route, keys[at]!));
    return true;
  }
  if (key === "g") {
    app.go(route.view === "groups" ? episodesOf(route) : groupsOf(route));
    return true;
  }
  return false;
}

type EpisodeRoute = Extract<Route, { page: "episode" }>;

function inEpisode(app: ViewerApp, route: EpisodeRoute, key: string): boolean {
  if (key === "[" || key === "]") return goToAttempt(app, route, key === "]" ? 1 : -1);
  if (key === "g") return goToGroup(app, route);
  if (key === "t") {
    app.tab = episodeTabs[(episodeTabs.indexOf(app.tab) + 1) % episodeTabs.length]!;
    app.update();
    return true;
  }
  const row = shownRow(app, route);
  if (row.state !== "ready") return false;
  const view = row.value;
  switch (key) {
    case "j":
      return goToTurn(app, { route, view }, 1);
    case "k":
      return goToTurn(app, { route, view }, -1);
    case "ArrowRight":
      return goToToken(app, { route, view }, (route.token ?? -1) + 1);
    case "ArrowLeft":
      return goToToken(app, { route, view }, (route.token ?? 1) - 1);
    case "n":
      return goToWorst(app, { route, view }, 1);
    case "p":
      return goToWorst(app, { route, view }, -1);
    case "m": {
      const modes = modesOf(app, route.run);
      const mode = modes[(modes.indexOf(route.mode) + 1) % modes.length]!;
      app.go({ ...route, mode }, { replace: true });
      return true;
    }
    case "c":
    case "i":
      copyTurn(app, { route, view }, key === "c" ? "text" : "ids");
      return true;
    case "Enter":
      nextMatch(app, { route, view }, 1);
      return app.search !== undefined;
    default:
      return false;
  }
}

interface Shown {
  readonly route: EpisodeRoute;
  readonly view: RowView;
}

function goToTurn(app: ViewerApp, { route, view }: Shown, step: 1 | -1): boolean {
  // All turns of the episode, not only those of the shown row.
  const episode = app.episode(route);
  const isWhole = episode.state === "ready" && !("isLive" in episode.value);
  const turns = (isWhole ? episode.value.turns : view.header.turns).map(
    ({ turnIndex }) => turnIndex,
  );
  const at = route.turn === undefined ? -1 : turns.indexOf(route.turn);
  const next = turns[Math.max(0, Math.min(turns.length - 1, at + step))];
  if (next !== undefined) selectTurn(app, route, next);
  return true;
}

function goToToken(app: ViewerApp, { route, view }: Shown, token: number): boolean {
  if (token >= 0 && token < view.tokenCount) selectToken(app, { route, view }, token);
  return true;
}

/** Moves to the next or previous one of the most surprising tokens. */
function goToWorst(app: ViewerApp, { route, view }: Shown, step: 1 | -1): boolean {
  const { worst } = view;
  const at = route.token === undefined ? -1 : worst.indexOf(route.token);
  const next = worst[Math.max(0, Math.min(worst.length - 1, at + step))];
  if (next === undefined) return true;
  const mode = route.mode === "mask" ? "logprob" : route.mode;
  selectToken(app, { route: { ...route, mode }, view }, next);
  app.note(`${worst.indexOf(next) + 1} of the ${worst.length} least likely tokens`);
  return true;
}

function goToAttempt(app: ViewerApp, route: EpisodeRoute, step: 1 | -1): boolean {
  const list = app.list(route.run);
  if (list.state !== "ready") return false;
  const { episodes } = shownEpisodes(app, episodesOf(app.lastList(route.run)), list.value);
  const at = episodes.findIndex(({ rolloutId }) => rolloutId === route.episode);
  const next = episodes[at + step];
  const { mode, find } = route;
  if (next !== undefined) {
    app.go({
      ...episodeRoute(route.run, next.rolloutId),
      mode,
      ...(find !== undefined && { find }),
    });
  }
  return true;
}

function goToGroup(app: ViewerApp, route: EpisodeRoute): boolean {
  const list = app.list(route.run);
  const entries = list.state === "ready" ? list.value.entries : [];
  const own = entries.find(({ rolloutId }) => rolloutId === route.episode);
  if (own === undefined) return false;
  const group = {
    page: "group",
    run: route.run,
    group: own.groupId,
    base: own.sampleIndex,
  } as const;
  if (linkTo(group) !== location.hash) app.go(group);
  return true;
}
