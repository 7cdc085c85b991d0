import { html, nothing, type TemplateResult } from "lit/html.js";
import { isSuccessful } from "../../../report/trial-result.ts";
import { countOf } from "../../../text/count-of.ts";
import { namesOf } from "../../../columns/column-specs.ts";
import { readFilter } from "../../model/lists/episode-filter.ts";
import { quoted } from "../../model/lists/list-fields.ts";
import { linkTo, type Route } from "../../model/route.ts";
import { columnWords } from "../../model/side-columns.ts";
import { visibleText } from "../../model/visible-text.ts";
import { fieldHistogram, rewardOverTime, rewardOverVersions } from "./charts.ts";
import { episodeTable } from "./episode-table.ts";
import { filterBox, filterProblems } from "./filter-box.ts";
import { groupTable } from "./group-table.ts";
import { listFigures } from "./list-figures.ts";
import { successRule } from "../../model/lists/success-rule.ts";
import { estimateOf, formatNumber, stateBadge, whenReady } from "../parts.ts";
import { runTabs } from "./run-tabs.ts";
import { shownEpisodes, type ShownEpisodes } from "./shown-episodes.ts";
import { episodeRoute, type EpisodeList, type ViewerApp } from "../viewer-app.ts";

type RunRoute = Extract<Route, { page: "run" }>;

/** Renders a run: sums, histograms, and its episodes or groups. */
export function runPage(app: ViewerApp, route: RunRoute): TemplateResult {
  return whenReady(app.list(route.run), (list) => {
    const shown = shownEpisodes(app, route, list);
    const { episodes, fields, problems } = shown;
    const addFilter = (condition: string) =>
      app.go({ ...route, filter: `${route.filter} ${condition}`.trim() });
    return html`<div class="run-page">
      ${runHead(list)} ${runningNow(route, list)}
      ${
        list.entries.length === 0
          ? nothing
          : html`<div class="charts">
              ${chartedFields(list, shown).map((field) => fieldHistogram(episodes, field, addFilter))}
              ${rewardOverTime(episodes)} ${rewardOverVersions(episodes)}
            </div>`
      }
      <div class="tools">
        ${runTabs(route)}
        ${filterBox({
          filter: route.filter,
          fields,
          example: "reward<1 turns>=10",
          searched: "its id, what it is about, and why it ended so",
          suggested: suggestedFilters(list, shown),
          change: (filter, { isTyped } = { isTyped: false }) =>
            app.go({ ...route, filter }, { replace: isTyped }),
        })}
        ${searchBox(app, route, shown)}
        <output class="shown-count"
          >${formatNumber(episodes.length)} of
          ${formatNumber(list.entries.length)}${
            route.view === "groups" ? ` episodes in ${countOf(shown.groups.length, "group")}` : ""
          }</output
        >
      </div>
      ${filterProblems(problems)}
      ${
        episodes.length === 0
          ? nothingShown(list)
          : route.view === "groups"
            ? groupTable(app, route, shown.groups)
            : episodeTable(app, route, { list, shown })
      }
    </div>`;
  });
}

/** Explains why a list is empty. */
function nothingShown({ entries, facts, running }: EpisodeList): TemplateResult {
  if (entries.length > 0)
    return html`<p class="waiting">No episode fits the filter or the search.</p>`;
  if (facts.state === "removed") {
    return html`<p class="waiting">
      The folder of the run was removed, and its episodes with it.
    </p>`;
  }
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

function runHead(list: EpisodeList): TemplateResult {
  const { facts, entries } = list;
  const { planned, environment, split, engine, model, dir, state, damagedCount, columns } = facts;
  const { averageReward, components } = listFigures(list);
  const count = (outcome: string) => entries.filter((entry) => entry.outcome === outcome).length;
  const rule = successRule(list);
  const successCount = entries.filter(isSuccessful).length;
  const sampled = entries.reduce((sum, entry) => sum + entry.sampledTokenCount, 0);
  const sums: readonly (readonly [string, string | TemplateResult | typeof nothing])[] = [
    [
      "episodes",
      planned === undefined
        ? formatNumber(entries.length)
        : `${formatNumber(entries.length)} of ${formatNumber(planned)}`,
    ],
    ["mean reward", averageReward === undefined ? "none" : estimateOf(averageReward)],
    ...Object.entries(components).map(([name, mean]) => [name, mean.value.toFixed(3)] as const),
    ["completed", formatNumber(count("completed"))],
    ["cut off", formatNumber(count("truncated"))],
    ["failed", formatNumber(count("failed"))],
    ...(rule === undefined
      ? []
      : ([["successes", html`<span title=${rule}>${formatNumber(successCount)}</span>`]] as const)),
    ...(count("aborted") === 0 ? [] : ([["interrupted", formatNumber(count("aborted"))]] as const)),
    [facts.hasNoRows ? "sampled tokens" : "trained tokens", formatNumber(sampled)],
  ];
  return html`<header class="run-head">
    <div>
      <h1>${visibleText(facts.key)} ${stateBadge(state)}</h1>
      <p class="faint">
        ${visibleText([environment, split, engine, model].filter((part) => part !== undefined).join(" · "))}
        <br />${visibleText(dir)}
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
          : html`<p class="broken">${countOf(damagedCount, "line")} of its files cannot be read</p>`
      }
    </div>
    <dl class="sums">
      ${sums.map(
        ([name, value]) =>
          html`<div>
            <dt>${visibleText(name)}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
    </dl>
  </header>`;
}

/** Returns the fields that have a histogram. */
function chartedFields({ entries }: EpisodeList, { fields }: ShownEpisodes) {
  const isAged = entries.some(({ staleness = 0 }) => staleness > 0);
  const names = ["turns", "sampled", "malformed", "seconds", ...(isAged ? ["stale"] : [])];
  const rewards = fields.filter(({ name }) => name.startsWith("reward"));
  return [...rewards, ...fields.filter(({ name }) => names.includes(name))];
}

/** Returns suggested filters that match some episodes of the run, but not all. */
function suggestedFilters({ entries }: EpisodeList, { fields }: ShownEpisodes): readonly string[] {
  const parties = [...new Set(entries.flatMap(({ party }) => party ?? []))].sort();
  const components = fields.filter(({ name }) => name.startsWith("reward."));
  const words = [
    "reward=0",
    "reward=none",
    ...(entries.some(({ success }) => success !== undefined) ? ["success=no"] : []),
    "outcome:truncated",
    "outcome:failed",
    ...parties.map((party) => `party:${party}`),
    "outcome:aborted",
    "malformed>0",
    "rows>1",
    "stale>0",
    ...components.slice(0, 3).map(({ name }) => `${quoted(name)}<1`),
  ];
  return words.filter((word) => {
    const { test, problems } = readFilter(word, fields);
    return problems.length === 0 && entries.some(test);
  });
}

/** The time without a key after which a search starts, in milliseconds. */
const typingMs = 350;

let typing: ReturnType<typeof setTimeout> | undefined;

/** Renders the field that searches all conversations of the run. */
function searchBox(app: ViewerApp, route: RunRoute, { hits }: ShownEpisodes): TemplateResult {
  const search = (text: string) => {
    clearTimeout(typing);
    if (app.route.page === "run" && app.route.run === route.run) {
      app.go({ ...app.route, search: text }, { replace: true });
    }
  };
  const count = [...(hits?.values() ?? [])].reduce((sum, own) => sum + own, 0);
  return html`<form
    role="search"
    class="search"
    @submit=${(event: Event) => {
      event.preventDefault();
      const input = (event.target as HTMLFormElement).elements.namedItem("text");
      search((input as HTMLInputElement).value);
    }}
  >
    <input
      type="search"
      name="text"
      class="text-search"
      placeholder="search what was said"
      title="searches messages, turns and answers in all conversations; letter case does not count"
      aria-label="search all conversations"
      .value=${route.search}
      @input=${(event: Event) => {
        const { value } = event.target as HTMLInputElement;
        clearTimeout(typing);
        typing = setTimeout(() => search(value), typingMs);
      }}
    />
    ${
      route.search === ""
        ? nothing
        : html`<output class="search-count"
            >${
              hits === undefined
                ? "searching…"
                : `${countOf(count, "hit")} in ${countOf(hits.size, "episode")}`
            }</output
          >`
    }
  </form>`;
}
