import { html, nothing, render, type TemplateResult } from "lit/html.js";
import { namesOf } from "../../columns/column-specs.ts";
import type { EpisodeEntry } from "../model/episode-entry.ts";
import { episodeFields, readFilter, sortEpisodes } from "../model/episode-filter.ts";
import { groupEpisodes, type GroupEntry } from "../model/group-entry.ts";
import { linkTo, type Route } from "../model/route.ts";
import { columnWords } from "../model/side-columns.ts";
import { visibleText } from "../model/visible-text.ts";
import { fieldHistogram, rewardOverTime, rewardOverVersions } from "./charts.ts";
import {
  endOf,
  formatDuration,
  formatNumber,
  rewardBadge,
  stateBadge,
  whenReady,
} from "./parts.ts";
import { filterBox, filterProblems } from "./filter-box.ts";
import { ariaSort, sortHead } from "./sort-head.ts";
import { runTabs } from "./run-tabs.ts";
import { episodeRoute, type EpisodeList, type ViewerApp } from "./viewer-app.ts";
import type { ListContent } from "./virtual-list.ts";

type RunRoute = Extract<Route, { page: "run" }>;

/** Renders a run: sums, histograms, and its episodes or groups. */
export function runPage(app: ViewerApp, route: RunRoute): TemplateResult {
  return whenReady(app.list(route.run), (list) => {
    const shown = shownEpisodes(app, route, list);
    const { problems } = readFilter(route.filter);
    const addFilter = (condition: string) =>
      app.go({ ...route, filter: `${route.filter} ${condition}`.trim() });
    return html`<div class="run-page">
      ${runHead(list)} ${runningNow(route, list)}
      ${
        list.entries.length === 0
          ? nothing
          : html`<div class="charts">
              ${chartedFields(list).map((name) => fieldHistogram(shown, name, addFilter))}
              ${rewardOverTime(shown)} ${rewardOverVersions(shown)}
            </div>`
      }
      <div class="tools">
        ${runTabs(route)}
        ${filterBox({
          filter: route.filter,
          fields: episodeFields,
          example: "reward<1 turns>=10",
          searched: "its id",
          suggested: suggestedFilters(list),
          change: (filter, { isTyped } = { isTyped: false }) =>
            app.go({ ...route, filter }, { replace: isTyped }),
        })}
        ${textBox(app, route)}
        <output class="shown-count"
          >${formatNumber(shown.length)} of ${formatNumber(list.entries.length)}</output
        >
      </div>
      ${filterProblems(problems)}
      ${
        shown.length === 0
          ? nothingShown(list)
          : route.view === "groups"
            ? groupTable(app, route, shown)
            : episodeTable(app, route, { list, shown })
      }
    </div>`;
  });
}

/** Explains why a list is empty. */
function nothingShown({ entries, facts, running }: EpisodeList): TemplateResult {
  if (entries.length > 0)
    return html`<p class="waiting">No episode fits the filter or the search.</p>`;
  if (running.length > 0 && facts.state !== "running") {
    return html`<p class="waiting">No episode was finished; what was recorded is named above.</p>`;
  }
  if (running.length > 0) return html`<p class="waiting">No episode has ended yet.</p>`;
  return html`<p class="waiting">
    ${
      facts.state === "running"
        ? "No episode has ended yet; those that do appear here."
        : "The run has no episodes."
    }
  </p>`;
}

/** Returns the fields that have a histogram. */
function chartedFields({ entries }: EpisodeList): readonly string[] {
  const isAged = entries.some(({ staleness = 0 }) => staleness > 0);
  const always = ["reward", "turns", "sampled", "malformed", "seconds"];
  return isAged ? [...always, "stale"] : always;
}

const shownRunning = 12;

/** Renders the running episodes, or those that were running when the run ended. */
function runningNow({ run }: RunRoute, { running, facts }: EpisodeList) {
  if (running.length === 0) return nothing;
  const rest = running.length - shownRunning;
  const how = facts.state === "running" ? "being played" : "not finished";
  return html`<nav class="running" aria-label=${how}>
    <b>${formatNumber(running.length)} ${how}:</b>
    ${running
      .slice(0, shownRunning)
      .map(
        ({ rolloutId }) =>
          html`<a href=${linkTo(episodeRoute(run, rolloutId))} data-running=${rolloutId}
            >${visibleText(rolloutId)}</a
          >`,
      )}
    ${rest > 0 ? html`<span class="faint">and ${formatNumber(rest)} more</span>` : nothing}
  </nav>`;
}

/** Returns the episodes that match the route's filter, in its order. */
export function shownEpisodes(
  app: ViewerApp,
  { filter, order, run }: RunRoute,
  list: EpisodeList,
): readonly EpisodeEntry[] {
  const search = app.textSearch?.run === run ? app.textSearch : undefined;
  const key = [run, filter, order, search?.text ?? ""].join("\n");
  if (cached.list === list && cached.key === key && cached.found === search?.found) {
    return cached.shown;
  }
  const { test } = readFilter(filter);
  const found = search?.found;
  const kept = list.entries.filter((entry) => test(entry) && (found?.has(entry.rolloutId) ?? true));
  const shown = sortEpisodes(kept, order === "" ? "task" : order);
  cached = { list, key, found, shown };
  return shown;
}

/**
 * The result of the last call. Sorting ten thousand episodes takes a moment, and each redraw needs
 * them.
 */
let cached: {
  readonly list: EpisodeList | undefined;
  readonly key: string;
  readonly found: ReadonlyMap<string, number> | undefined;
  readonly shown: readonly EpisodeEntry[];
} = { list: undefined, key: "", found: undefined, shown: [] };

function runHead({ facts, entries }: EpisodeList): TemplateResult {
  const { planned, environment, split, engine, model, dir, state, damagedCount, columns } = facts;
  const rewards = entries.flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const count = (outcome: string) => entries.filter((entry) => entry.outcome === outcome).length;
  const sampled = entries.reduce((sum, entry) => sum + entry.sampledTokenCount, 0);
  const facts2: readonly (readonly [string, string])[] = [
    [
      "episodes",
      planned === undefined
        ? formatNumber(entries.length)
        : `${formatNumber(entries.length)} of ${formatNumber(planned)}`,
    ],
    ["mean reward", rewards.length === 0 ? "none" : mean.toFixed(3)],
    ["completed", formatNumber(count("completed"))],
    ["cut off", formatNumber(count("truncated"))],
    ["failed", formatNumber(count("failed"))],
    ...(count("aborted") === 0 ? [] : ([["interrupted", formatNumber(count("aborted"))]] as const)),
    ["trained tokens", formatNumber(sampled)],
  ];
  return html`<header class="run-head">
    <div>
      <h1>${facts.key} ${stateBadge(state)}</h1>
      <p class="faint">
        ${[environment, split, engine, model].filter((part) => part !== undefined).join(" · ")}
        <br />${dir}
        ${
          columns === undefined
            ? nothing
            : html`<br />side columns:
                ${namesOf(columns)
                  .map((name) => columnWords[name].title)
                  .join(", ")}`
        }
      </p>
      ${
        damagedCount === 0
          ? nothing
          : html`<p class="broken">${damagedCount} lines of its files cannot be read</p>`
      }
    </div>
    <dl class="sums">
      ${facts2.map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
    </dl>
  </header>`;
}

/** Returns suggested filters that match at least one episode of the run. */
function suggestedFilters({ entries }: EpisodeList): readonly string[] {
  const parties = [...new Set(entries.flatMap(({ party }) => party ?? []))].sort();
  const words = [
    "reward=0",
    "reward=none",
    "outcome:truncated",
    "outcome:failed",
    ...parties.map((party) => `party:${party}`),
    "outcome:aborted",
    "malformed>0",
    "rows>1",
    "stale>0",
  ];
  return words.filter((word) => {
    const { test } = readFilter(word);
    return entries.some(test);
  });
}

function textBox(app: ViewerApp, { run }: RunRoute): TemplateResult {
  const search = app.textSearch?.run === run ? app.textSearch : undefined;
  return html`<form
    role="search"
    class="search"
    @submit=${(event: Event) => {
      event.preventDefault();
      const input = (event.target as HTMLFormElement).elements.namedItem("text");
      void app.searchTexts(run, (input as HTMLInputElement).value);
    }}
  >
    <input
      type="search"
      name="text"
      placeholder="search all conversations"
      aria-label="search all conversations, then press Enter"
      .value=${search?.text ?? ""}
      @search=${(event: Event) => {
        if ((event.target as HTMLInputElement).value === "") void app.searchTexts(run, "");
      }}
    />
    ${
      search === undefined
        ? nothing
        : html`<output class="search-count">in ${formatNumber(search.found.size)} episodes</output>`
    }
  </form>`;
}

interface Column {
  readonly field: string;
  readonly width: string;
  readonly draw: CellOf;
}

const columns: readonly Column[] = [
  {
    field: "task",
    width: "64px",
    draw: ({ taskIndex, taskId }) => html`<span title=${visibleText(taskId)}>${taskIndex}</span>`,
  },
  {
    field: "sample",
    width: "72px",
    draw: ({ sampleIndex }) => html`#${sampleIndex}`,
  },
  {
    field: "reward",
    width: "92px",
    draw: ({ reward, outcome }) => rewardBadge(reward, outcome === "failed"),
  },
  { field: "rows", width: "60px", draw: ({ rowCount }) => html`${rowCount}` },
  { field: "end", width: "minmax(150px, 2fr)", draw: (entry) => endOf(entry) },
  { field: "party", width: "96px", draw: ({ party }) => html`${party ?? ""}` },
  { field: "turns", width: "66px", draw: ({ turnCount }) => html`${turnCount}` },
  { field: "calls", width: "66px", draw: ({ toolCallCount }) => html`${toolCallCount}` },
  {
    field: "malformed",
    width: "92px",
    draw: ({ formatErrorCount }) =>
      html`${formatErrorCount === 0 ? "" : html`<b class="warning">${formatErrorCount}</b>`}`,
  },
  {
    field: "sampled",
    width: "86px",
    draw: ({ sampledTokenCount }) => html`${formatNumber(sampledTokenCount)}`,
  },
  {
    field: "tokens",
    width: "86px",
    draw: ({ tokenCount }) => html`${formatNumber(tokenCount)}`,
  },
  {
    field: "versions",
    width: "minmax(80px, 1fr)",
    draw: ({ versions = [] }) => html`${versionWords(versions)}`,
  },
  {
    field: "stale",
    width: "62px",
    draw: ({ staleness }) => html`${staleness ?? ""}`,
  },
  {
    field: "seconds",
    width: "86px",
    draw: ({ durationMs }) => html`${formatDuration(durationMs)}`,
  },
  { field: "order", width: "74px", draw: ({ order }) => html`${order + 1}` },
];

/**
 * Returns the columns that are useful for this run: without failures, versions or attempts of several
 * rows, their columns are left out.
 */
function tellingColumns({ entries }: EpisodeList): readonly Column[] {
  const hasFailures = entries.some(({ party }) => party !== undefined);
  const hasSeveralRows = entries.some(({ rowCount }) => rowCount > 1);
  const hasVersions = entries.some(({ versions = [] }) => versions.length > 0);
  return columns.filter(({ field }) => {
    if (field === "party") return hasFailures;
    if (field === "rows") return hasSeveralRows;
    return hasVersions || (field !== "versions" && field !== "stale");
  });
}

type CellOf = (entry: EpisodeEntry) => TemplateResult;

function versionWords(versions: readonly string[]): string {
  const [first, ...rest] = versions;
  if (first === undefined) return "";
  const last = rest.at(-1);
  return last === undefined ? first : `${first} → ${last}`;
}

function episodeTable(
  app: ViewerApp,
  route: RunRoute,
  { list, shown }: { readonly list: EpisodeList; readonly shown: readonly EpisodeEntry[] },
): TemplateResult {
  const shownColumns = tellingColumns(list);
  const order = route.order === "" ? "task" : route.order;
  const content: ListContent = {
    keys: shown.map(({ rolloutId }) => rolloutId),
    current: route.at,
    draw: (index) => {
      const entry = shown[index]!;
      const row = document.createElement("a");
      row.className = entry.rolloutId === route.at ? "list-row current" : "list-row";
      row.setAttribute("role", "row");
      row.href = linkTo(episodeRoute(route.run, entry.rolloutId));
      row.dataset["episode"] = entry.rolloutId;
      row.tabIndex = -1;
      const cells = shownColumns.map(
        ({ field, draw }) =>
          html`<span role="cell" class="cell cell-${field}">${draw(entry)}</span>`,
      );
      render(html`${cells}`, row);
      return row;
    },
  };
  const widths = shownColumns.map(({ width }) => width).join(" ");
  return html`<div
    class="list"
    role="table"
    aria-label="episodes"
    aria-rowcount=${shown.length}
    .style=${`--columns:${widths}`}
  >
    <div class="list-head" role="row">
      ${shownColumns.map(({ field }) => columnHead(app, route, field, order))}
    </div>
    <virtual-list .content=${content} aria-label="episodes"></virtual-list>
  </div>`;
}

function columnHead(app: ViewerApp, route: RunRoute, name: string, order: string): TemplateResult {
  const field = episodeFields.find((candidate) => candidate.name === name)!;
  const sort = (next: string) => app.go({ ...route, order: next }, { replace: true });
  return html`<span
    role="columnheader"
    class="cell cell-${name}"
    aria-sort=${ariaSort({ field, order })}
    >${sortHead({ field, order, sort })}</span
  >`;
}

function groupTable(app: ViewerApp, route: RunRoute, shown: readonly EpisodeEntry[]) {
  const groups = shownGroups(shown);
  const content: ListContent = {
    keys: groups.map(({ groupId }) => groupId),
    current: route.at,
    draw: (index) => {
      const group = groups[index]!;
      const row = document.createElement("a");
      row.className = group.groupId === route.at ? "list-row current" : "list-row";
      row.setAttribute("role", "row");
      row.href = linkTo({ page: "group", run: route.run, group: group.groupId, base: 0 });
      row.dataset["group"] = group.groupId;
      row.tabIndex = -1;
      render(groupCells(group), row);
      return row;
    },
  };
  return html`<div
    class="list"
    role="table"
    aria-label="groups"
    aria-rowcount=${groups.length}
    .style=${"--columns:90px 90px 90px 1fr"}
  >
    <div class="list-head" role="row">
      ${["task", "mean", "spread", "rewards of its attempts"].map(
        (title, index) =>
          html`<span role="columnheader" class="cell group-cell-${index}">${title}</span>`,
      )}
    </div>
    <virtual-list .content=${content} aria-label="groups"></virtual-list>
  </div>`;
}

/** Groups the shown episodes. */
export function shownGroups(shown: readonly EpisodeEntry[]): readonly GroupEntry[] {
  return groupEpisodes(shown);
}

function groupCells({ taskIndex, groupId, mean, spread, attempts, isDegenerate }: GroupEntry) {
  return html`<span role="cell" class="cell group-cell-0" title=${visibleText(groupId)}
      >${taskIndex}</span
    ><span role="cell" class="cell group-cell-1">${mean === undefined ? "–" : mean.toFixed(3)}</span
    ><span role="cell" class="cell group-cell-2"
      >${spread === undefined ? "–" : spread.toFixed(3)}</span
    ><span role="cell" class="cell group-cell-3"
      >${attempts.map(({ reward, outcome }) => rewardBadge(reward, outcome === "failed"))}
      ${
        isDegenerate
          ? html`<span class="degenerate" title="advantages within the group are all 0"
              >all equal: nothing to learn from</span
            >`
          : nothing
      }</span
    >`;
}
