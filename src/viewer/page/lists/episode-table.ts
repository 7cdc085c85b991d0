import { html, render, type TemplateResult } from "lit/html.js";
import type { EpisodeEntry } from "../../model/episode-entry.ts";
import { haveNames, whyText } from "../../model/lists/episode-filter.ts";
import type { ListField } from "../../model/lists/list-fields.ts";
import { linkTo, type Route } from "../../model/route.ts";
import { componentNames } from "../../model/lists/run-figures.ts";
import { visibleText } from "../../model/visible-text.ts";
import { formatDuration, formatNumber, rewardBadge } from "../parts.ts";
import { foundRoute } from "./run-tabs.ts";
import { orderOf, type ShownEpisodes } from "./shown-episodes.ts";
import { ariaSort, sortHead } from "./sort-head.ts";
import type { EpisodeList, ViewerApp } from "../viewer-app.ts";
import type { ListContent } from "./virtual-list.ts";

type RunRoute = Extract<Route, { page: "run" }>;

/** The width of the window below which a row has several lines, in pixels. */
export const narrowWidth = 620;

/** The height of a row in pixels: with one line, and with several lines. */
const rowHeights = { wide: 34, narrow: 78 } as const;

/** The largest number of components that have columns. A filter can use all components. */
const maxComponents = 4;

interface Column {
  readonly field: string;
  readonly width: string;
  /** The least width of the window in which the column is shown. Default 0. */
  readonly from?: number;
  readonly draw: (entry: EpisodeEntry) => string | number | TemplateResult;
}

const columns: readonly Column[] = [
  {
    field: "task",
    width: "56px",
    draw: ({ taskIndex, taskId }) => html`<span title=${visibleText(taskId)}>${taskIndex}</span>`,
  },
  {
    field: "name",
    width: "minmax(110px, 1fr)",
    draw: (entry) =>
      html`<span title=${visibleText(entry.taskId)}>${visibleText(ownName(entry))}</span>`,
  },
  { field: "sample", width: "64px", draw: ({ sampleIndex }) => `#${sampleIndex}` },
  {
    field: "reward",
    width: "84px",
    draw: rewardBadge,
  },
  { field: "hits", width: "56px", draw: () => "" },
  { field: "about", width: "minmax(140px, 3fr)", draw: ({ about = "" }) => longCell(about) },
  { field: "why", width: "minmax(140px, 3fr)", draw: (entry) => whyCell(entry) },
  { field: "rows", width: "56px", draw: ({ rowCount }) => rowCount },
  { field: "party", width: "90px", from: 1100, draw: ({ party }) => party ?? "" },
  { field: "turns", width: "58px", draw: ({ turnCount }) => turnCount },
  { field: "calls", width: "58px", from: 900, draw: ({ toolCallCount }) => toolCallCount },
  {
    field: "malformed",
    width: "88px",
    from: 900,
    draw: ({ formatErrorCount }) =>
      formatErrorCount === 0 ? "" : html`<b class="warning">${formatErrorCount}</b>`,
  },
  {
    field: "sampled",
    width: "78px",
    from: 1000,
    draw: ({ sampledTokenCount }) => formatNumber(sampledTokenCount),
  },
  {
    field: "tokens",
    width: "76px",
    from: 1450,
    draw: ({ tokenCount }) => formatNumber(tokenCount),
  },
  {
    field: "versions",
    width: "minmax(80px, 1fr)",
    from: 900,
    draw: ({ versions = [] }) => versionWords(versions),
  },
  { field: "stale", width: "58px", from: 1100, draw: ({ staleness }) => staleness ?? "" },
  {
    field: "seconds",
    width: "78px",
    from: 800,
    draw: ({ durationMs }) => formatDuration(durationMs),
  },
  { field: "order", width: "78px", from: 1280, draw: ({ order }) => order + 1 },
];

function longCell(text: string): TemplateResult {
  return html`<span title=${visibleText(text)}>${visibleText(text)}</span>`;
}

function whyCell(entry: EpisodeEntry): TemplateResult {
  const { outcome, reason } = entry;
  const tone =
    outcome === "failed" ? "end-failed" : outcome === "completed" ? "end-completed" : "end-cut";
  const text = visibleText(whyText(entry));
  return html`<span class="${tone} ${reason === undefined ? "faint" : ""}" title=${text}
    >${text}</span
  >`;
}

/** Returns a task's name without environment and split. */
function ownName({ taskId, environment, split }: EpisodeEntry): string {
  const prefix = `${environment}/${split}/`;
  return taskId.startsWith(prefix) ? taskId.slice(prefix.length) : taskId;
}

function versionWords(versions: readonly string[]): string {
  const [first, ...rest] = versions;
  if (first === undefined) return "";
  const last = rest.at(-1);
  return last === undefined ? first : `${first} → ${last}`;
}

/** Returns the columns that are useful for this run and have room in the window. */
function usefulColumns(
  { entries }: EpisodeList,
  { hits }: ShownEpisodes,
  width: number,
): readonly Column[] {
  const isUseful: Readonly<Record<string, boolean>> = {
    task: !haveNames(entries),
    name: haveNames(entries),
    hits: hits !== undefined,
    about: entries.some(({ about }) => about !== undefined),
    party: entries.some(({ party }) => party !== undefined),
    rows: entries.some(({ rowCount }) => rowCount > 1),
    malformed: entries.some(({ formatErrorCount }) => formatErrorCount > 0),
    versions: entries.some(({ versions = [] }) => versions.length > 0),
    stale: entries.some(({ versions = [] }) => versions.length > 0),
  };
  const useful = columns.flatMap((column) => {
    if (column.field !== "hits") return [column];
    return [{ ...column, draw: (entry: EpisodeEntry) => hits?.get(entry.rolloutId) ?? "" }];
  });
  const shown = useful.filter(({ field, from = 0 }) => isUseful[field] !== false && width >= from);
  const left = width - shown.reduce((sum, { width: own }) => sum + leastWidth(own), margin);
  const components = componentColumns(entries).slice(
    0,
    Math.max(0, Math.floor(left / componentWidth)),
  );
  const isNarrow = width < narrowWidth;
  return shown.flatMap((column) =>
    column.field === "reward" && !isNarrow ? [column, ...components] : [column],
  );
}

/** The width of the content beside the columns, in pixels. */
const margin = 40;

const componentWidth = 70;

/** Returns the first number of pixels in a column's CSS width, which is its least width. */
function leastWidth(width: string): number {
  return Number(/\d+/.exec(width)?.[0]);
}

function componentColumns(entries: readonly EpisodeEntry[]): readonly Column[] {
  return componentNames(entries)
    .slice(0, maxComponents)
    .map((name) => ({
      field: `reward.${name}`,
      width: `${componentWidth}px`,
      draw: ({ components }) => {
        const value = components?.[name];
        return value === undefined ? "" : formatNumber(value);
      },
    }));
}

/** Renders the list of episodes. */
export function episodeTable(
  app: ViewerApp,
  route: RunRoute,
  { list, shown }: { readonly list: EpisodeList; readonly shown: ShownEpisodes },
): TemplateResult {
  const { episodes, fields } = shown;
  const useful = usefulColumns(list, shown, app.width);
  const titleOf = (name: string) => fields.find((field) => field.name === name)!.title;
  const isNarrow = app.width < narrowWidth;
  const content: ListContent = {
    keys: episodes.map(({ rolloutId }) => rolloutId),
    current: route.at,
    rowHeight: isNarrow ? rowHeights.narrow : rowHeights.wide,
    draw: (index) => {
      const entry = episodes[index]!;
      const row = document.createElement("a");
      row.className = entry.rolloutId === route.at ? "list-row current" : "list-row";
      row.setAttribute("role", "row");
      row.href = linkTo(foundRoute(route, entry.rolloutId));
      row.dataset["episode"] = entry.rolloutId;
      row.tabIndex = -1;
      render(
        useful.map(
          ({ field, draw }) =>
            html`<span role="cell" class="cell cell-${field}" data-label=${titleOf(field)}
              >${draw(entry)}</span
            >`,
        ),
        row,
      );
      return row;
    },
  };
  return html`<div
    class="list ${isNarrow ? "narrow" : ""}"
    role="table"
    aria-label="episodes"
    aria-rowcount=${episodes.length}
    .style=${`--columns:${useful.map(({ width }) => width).join(" ")};--row-height:${content.rowHeight}px`}
  >
    <div class="list-head" role="row">
      ${useful.map(({ field }) => columnHead(app, route, fields, field))}
    </div>
    <virtual-list .content=${content} aria-label="episodes"></virtual-list>
  </div>`;
}

/** Renders the heading of a column, which sorts the list. */
export function columnHead<Item>(
  app: ViewerApp,
  route: RunRoute,
  fields: readonly ListField<Item>[],
  name: string,
): TemplateResult {
  const field = fields.find((candidate) => candidate.name === name)!;
  const order = orderOf(route);
  const sort = (next: string) => app.go({ ...route, order: next }, { replace: true });
  return html`<span
    role="columnheader"
    class="cell cell-${name}"
    aria-sort=${ariaSort({ field, order })}
    >${sortHead({ field, order, sort })}</span
  >`;
}
