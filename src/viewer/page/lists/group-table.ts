import { html, nothing, render, type TemplateResult } from "lit/html.js";
import { haveNames } from "../../model/lists/episode-filter.ts";
import { groupFields, type GroupEntry } from "../../model/lists/group-entry.ts";
import { linkTo, type Route } from "../../model/route.ts";
import { visibleText } from "../../model/visible-text.ts";
import { columnHead, narrowWidth } from "./episode-table.ts";
import { rewardBadge } from "../parts.ts";
import type { ViewerApp } from "../viewer-app.ts";
import type { ListContent } from "./virtual-list.ts";

type RunRoute = Extract<Route, { page: "run" }>;

/** The height of a row in pixels: with one line, and with several lines. */
const rowHeights = { wide: 34, narrow: 78 } as const;

/** Renders the list of groups. */
export function groupTable(app: ViewerApp, route: RunRoute, groups: readonly GroupEntry[]) {
  const isNamed = haveNames(groups.flatMap(({ attempts }) => attempts));
  const isNarrow = app.width < narrowWidth;
  const content: ListContent = {
    keys: groups.map(({ groupId }) => groupId),
    current: route.at,
    rowHeight: isNarrow ? rowHeights.narrow : rowHeights.wide,
    draw: (index) => {
      const group = groups[index]!;
      const row = document.createElement("a");
      row.className = group.groupId === route.at ? "list-row current" : "list-row";
      row.setAttribute("role", "row");
      row.href = linkTo({ page: "group", run: route.run, group: group.groupId, base: 0 });
      row.dataset["group"] = group.groupId;
      row.tabIndex = -1;
      render(groupCells(group, isNamed), row);
      return row;
    },
  };
  const shown = [isNamed ? "name" : "task", "about", "mean", "spread", "attempts"];
  const first = isNamed ? "minmax(120px, 1fr)" : "70px";
  return html`<div
    class="list ${isNarrow ? "narrow" : ""}"
    role="table"
    aria-label="groups"
    aria-rowcount=${groups.length}
    .style=${`--columns:${first} minmax(120px, 2fr) 70px 70px minmax(200px, 3fr);--row-height:${content.rowHeight}px`}
  >
    <div class="list-head" role="row">
      ${shown.map((name) => columnHead(app, route, groupFields, name))}
    </div>
    <virtual-list .content=${content} aria-label="groups"></virtual-list>
  </div>`;
}

function groupCells(
  { taskIndex, groupId, mean, spread, attempts, isDegenerate }: GroupEntry,
  isNamed: boolean,
): TemplateResult {
  const about = visibleText(attempts[0]?.about ?? "");
  const [name, text] = isNamed ? ["name", attempts[0]?.taskId ?? groupId] : ["task", taskIndex];
  return html`<span role="cell" class="cell cell-${name}" title=${visibleText(groupId)}
      >${visibleText(String(text))}</span
    ><span role="cell" class="cell cell-about" title=${about}>${about}</span
    ><span role="cell" class="cell cell-mean" data-label="mean"
      >${mean === undefined ? "–" : mean.toFixed(3)}</span
    ><span role="cell" class="cell cell-spread" data-label="spread"
      >${spread === undefined ? "–" : spread.toFixed(3)}</span
    ><span role="cell" class="cell cell-attempts"
      >${attempts.map(rewardBadge)}
      ${
        isDegenerate
          ? html`<span class="degenerate" title="advantages within the group are all 0"
              >all equal: nothing to learn from</span
            >`
          : nothing
      }</span
    >`;
}
