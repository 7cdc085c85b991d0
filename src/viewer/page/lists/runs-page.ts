import { html, nothing, type TemplateResult } from "lit/html.js";
import type { Estimate } from "../../../report/statistics/interval.ts";
import { readListFilter, sortList, type ListField } from "../../model/lists/list-fields.ts";
import { linkTo, type Route } from "../../model/route.ts";
import { dateText, runFields, runTexts, scopeText } from "../../model/lists/run-fields.ts";
import type { RunOverview } from "../../model/lists/run-figures.ts";
import { differingSettings, settingText } from "../../model/lists/setting-differences.ts";
import { visibleText } from "../../model/visible-text.ts";
import { filterBox, filterProblems } from "./filter-box.ts";
import { estimateOf, formatNumber, stateBadge, whenReady } from "../parts.ts";
import { ariaSort, sortHead } from "./sort-head.ts";
import { runRoute, type ViewerApp } from "../viewer-app.ts";

type RunsRoute = Extract<Route, { page: "runs" }>;

/** The columns of the list. The others of `runFields()` are for filters only. */
const columns: readonly string[] = [
  "run",
  "date",
  "env",
  "model",
  "episodes",
  "reward",
  "pass1",
  "passk",
];

/** Renders the list of all runs. */
export function runsPage(app: ViewerApp, route: RunsRoute): TemplateResult {
  return whenReady(app.runs, ({ runs, unreadable }) => {
    const settings = differingSettings(runs.map(({ facts }) => facts));
    const fields = runFields(settings);
    const { test, problems } = readListFilter(route.filter, { fields, textsOf: runTexts });
    const shown = sortList(runs.filter(test), route.order === "" ? "run" : route.order, {
      fields,
      compareEqual: byName,
    });
    return html`<div class="runs-page">
      <h1>Runs</h1>
      <div class="tools">
        ${filterBox({
          filter: route.filter,
          fields,
          example: "reward>0.5 env:shop",
          searched: "its name, environment and model",
          change: (filter) => app.go({ ...route, filter }, { replace: true }),
        })}
        <output class="shown-count"
          >${formatNumber(shown.length)} of ${formatNumber(runs.length)}</output
        >
      </div>
      ${filterProblems(problems)} ${pickNote(app, route)} ${thresholdNote(runs)}
      ${shown.length === 0 ? nothing : runTable(app, route, { shown, fields, settings })}
      ${unreadable.map(
        ({ dir, problem }) =>
          html`<p class="broken">${visibleText(dir)} is left out: ${visibleText(problem)}</p>`,
      )}
    </div>`;
  });
}

function byName(left: RunOverview, right: RunOverview): number {
  return left.facts.key < right.facts.key ? -1 : 1;
}

/** Names the threshold with which the viewer was started. */
function thresholdNote([first]: readonly RunOverview[]) {
  const threshold = first?.facts.successThreshold;
  return threshold === undefined
    ? nothing
    : html`<p class="faint">A success has a reward of ${threshold} or more.</p>`;
}

/** Names the run that is chosen for a comparison. */
function pickNote(app: ViewerApp, { pick, ...route }: RunsRoute) {
  if (pick === undefined) return nothing;
  return html`<p class="pick-note" role="status">
    Choose the run to compare with <b>${visibleText(pick)}</b>.
    <button type="button" @click=${() => app.go(route, { replace: true })}>no comparison</button>
  </p>`;
}

interface ShownRuns {
  readonly shown: readonly RunOverview[];
  readonly fields: readonly ListField<RunOverview>[];
  readonly settings: readonly string[];
}

function runTable(app: ViewerApp, route: RunsRoute, { shown, fields, settings }: ShownRuns) {
  const order = route.order === "" ? "run" : route.order;
  const heads = columns.map((name) => fields.find((field) => field.name === name)!);
  const sort = (next: string) => app.go({ ...route, order: next }, { replace: true });
  return html`<div class="scrolled" tabindex="0" role="region" aria-label="runs">
    <table class="runs cards">
      <thead>
        <tr>
          ${heads.map(
            (field) =>
              html`<th aria-sort=${ariaSort({ field, order })}>
                ${sortHead({ field, order, sort })}
              </th>`,
          )}
          <th>settings that differ</th>
          <th>compare</th>
        </tr>
      </thead>
      <tbody>
        ${shown.map((run) => runRow(app, route, { run, settings }))}
      </tbody>
    </table>
  </div>`;
}

/** The largest number of differing settings that a row shows. A filter can use all of them. */
const maxSettings = 8;

interface ShownRun {
  readonly run: RunOverview;
  readonly settings: readonly string[];
}

function runRow(app: ViewerApp, route: RunsRoute, { run, settings }: ShownRun): TemplateResult {
  const { facts, figures, startedAtMs } = run;
  const { key, dir, state, episodeCount, planned, model = "", configuration } = facts;
  const { averageReward, passHatK, attemptCount } = figures;
  const last = attemptCount > 1 ? passHatK[String(attemptCount)] : undefined;
  const count = formatNumber(episodeCount);
  const own = settings.filter((name) => configuration[name] !== undefined);
  return html`<tr data-run=${key}>
    <th scope="row" data-label="run">
      <a class="run-name" href=${linkTo(runRoute(key))} title=${visibleText(dir)}
        >${visibleText(key)}</a
      >
      ${stateBadge(state)}
    </th>
    <td data-label="started">${startedAtMs === undefined ? "" : dateText(startedAtMs)}</td>
    <td data-label="environment">${visibleText(scopeText(run) ?? "")}</td>
    <td data-label="model" title=${visibleText(model)}>${visibleText(lastPart(model))}</td>
    <td data-label="episodes">
      ${planned === undefined ? count : `${count} of ${formatNumber(planned)}`}
    </td>
    <td data-label="mean reward">${estimateOf(averageReward)}</td>
    <td data-label="pass^1">${passOf(passHatK["1"])}</td>
    <td data-label="">${passOf(last, `pass^${attemptCount}`)}</td>
    <td data-label=${own.length === 0 ? "" : "settings that differ"} class="settings">
      ${own
        .slice(0, maxSettings)
        .map(
          (name) =>
            html`<span class="setting"
              >${visibleText(name)} <b>${visibleText(settingText(configuration[name]))}</b></span
            > `,
        )}
      ${
        own.length <= maxSettings
          ? nothing
          : html`<a href=${linkTo({ page: "about", run: key })}
              >and ${own.length - maxSettings} more</a
            >`
      }
    </td>
    <td data-label="">${compareCell(app, route, run)}</td>
  </tr>`;
}

function lastPart(model: string): string {
  return model.replace(/\/+$/, "").split("/").at(-1) ?? model;
}

function passOf(estimate: Estimate | undefined, label = ""): TemplateResult | typeof nothing {
  if (estimate === undefined) return nothing;
  return html`${label === "" ? nothing : html`<span class="faint">${label}</span> `}${estimate.value.toFixed(3)}`;
}

/** Renders the choice of a run to compare, or the comparison with the chosen one. */
function compareCell(app: ViewerApp, route: RunsRoute, run: RunOverview): TemplateResult {
  const { key } = run.facts;
  const { pick } = route;
  if (pick === undefined) {
    return html`<button
      type="button"
      aria-label=${`compare ${visibleText(key)} with another run`}
      @click=${() => app.go({ ...route, pick: key }, { replace: true })}
    >
      compare…
    </button>`;
  }
  if (pick === key) return html`<b>chosen</b>`;
  const other =
    app.runs.state === "ready"
      ? app.runs.value.runs.find(({ facts }) => facts.key === pick)
      : undefined;
  const reason = other === undefined ? undefined : reasonAgainst(other, run);
  if (reason !== undefined) return html`<span class="faint">cannot compare: ${reason}</span>`;
  return html`<a
    class="button"
    href=${linkTo({ page: "compare", run: pick, other: key, order: "" })}
    >compare with ${visibleText(pick)}</a
  >`;
}

/** Describes why two runs cannot be compared, as far as the list knows. */
function reasonAgainst(left: RunOverview, right: RunOverview): string | undefined {
  for (const { figures, facts } of [left, right]) {
    if (figures.scoredCount === 0) return `${visibleText(facts.key)} has no scored episode`;
  }
  const [own, other] = [left.figures.scopes, right.figures.scopes];
  const isApart = own.length > 0 && other.length > 0 && !own.some((scope) => other.includes(scope));
  return isApart
    ? `one is of ${visibleText(own.join(" and "))}, the other of ${visibleText(other.join(" and "))}`
    : undefined;
}
