import { html, nothing, type TemplateResult } from "lit/html.js";
import { live } from "lit/directives/live.js";
import { collectResults, type RunResults } from "../../../report/collect-results.ts";
import {
  compareRuns,
  type RunComparison,
  type TaskComparison,
} from "../../../report/compare-runs.ts";
import { describeInterval } from "../../../report/statistics/describe-interval.ts";
import type { AboutRun } from "../../model/about-run.ts";
import { linkTo, type Route } from "../../model/route.ts";
import { settingDifferences } from "../../model/lists/setting-differences.ts";
import { visibleText } from "../../model/visible-text.ts";
import { choice, whenReady } from "../parts.ts";
import type { EpisodeList, ViewerApp } from "../viewer-app.ts";
import { formatCount } from "../../../text/format-count.ts";

type CompareRoute = Extract<Route, { page: "compare" }>;

/** Renders the comparison of two runs: the settings that differ, and the rewards task by task. */
export function comparePage(app: ViewerApp, route: CompareRoute): TemplateResult {
  return html`<div class="compare-page">
    ${runChoices(app, route)}
    ${route.run === route.other ? sameRun(route.run) : differentRuns(app, route)}
  </div>`;
}

function sameRun(run: string): TemplateResult {
  return html`<p class="waiting">
    Both runs are ${visibleText(run)}, so nothing differs. Choose another run.
  </p>`;
}

function differentRuns(app: ViewerApp, route: CompareRoute): TemplateResult {
  return html`${whenReady(app.list(route.run), (left) =>
    whenReady(app.list(route.other), (right) => {
      let comparison: RunComparison;
      try {
        comparison = compareRuns(resultsOf(left), resultsOf(right));
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return html`<p class="broken" role="alert">${visibleText(message)}</p>
          ${settingTable(app, route, [left, right])}`;
      }
      return drawComparison(app, route, { comparison, left, right });
    }),
  )}`;
}

/** Renders the choice of both runs. */
function runChoices(app: ViewerApp, route: CompareRoute): TemplateResult | typeof nothing {
  if (app.runs.state !== "ready") return nothing;
  const keys = app.runs.value.runs.map(({ facts }) => facts.key);
  const { run, other } = route;
  const select = (label: string, chosen: string, choose: (key: string) => void) =>
    html`<label
      >${label}
      <select
        @change=${(event: Event) => choose((event.target as HTMLSelectElement).value)}
        .value=${live(chosen)}
      >
        ${keys.map(
          (key) =>
            html`<option value=${key} ?selected=${key === chosen}>${visibleText(key)}</option>`,
        )}
      </select></label
    >`;
  return html`<div class="tools run-choices">
    ${select("compare", run, (key) => app.go({ ...route, run: key }))}
    ${select("with", other, (key) => app.go({ ...route, other: key }))}
    <button type="button" @click=${() => app.go({ ...route, run: other, other: run })}>swap</button>
  </div>`;
}

/** Renders the settings, and the facts that decide tokens and rewards, in which the runs differ. */
function settingTable(
  app: ViewerApp,
  route: CompareRoute,
  [left, right]: readonly [EpisodeList, EpisodeList],
): TemplateResult {
  return whenReady(app.about(route.run), (own) =>
    whenReady(app.about(route.other), (other) => {
      const all = (list: EpisodeList, { configuration, identity }: AboutRun) => ({
        ...(list.facts.model !== undefined && { model: list.facts.model }),
        ...configuration,
        ...identity,
      });
      const differences = settingDifferences(all(left, own), all(right, other));
      return html`<details class="setting-differences" open>
        <summary>
          ${
            differences.length === 0
              ? "the settings are the same"
              : `${differences.length} ${differences.length === 1 ? "setting differs" : "settings differ"}`
          }
        </summary>
        ${
          differences.length === 0
            ? nothing
            : html`<table class="values">
                <thead>
                  <tr>
                    <th>setting</th>
                    <th>${visibleText(route.run)}</th>
                    <th>${visibleText(route.other)}</th>
                  </tr>
                </thead>
                <tbody>
                  ${differences.map(
                    ({ name, a, b }) =>
                      html`<tr data-setting=${name}>
                        <th scope="row">${visibleText(name)}</th>
                        <td>${settingCell(a)}</td>
                        <td>${settingCell(b)}</td>
                      </tr>`,
                  )}
                </tbody>
              </table>`
        }
      </details>`;
    }),
  );
}

function settingCell(value: string | undefined): TemplateResult {
  return value === undefined
    ? html`<span class="faint">not set</span>`
    : html`${visibleText(value)}`;
}

function resultsOf({ facts, entries }: EpisodeList): RunResults {
  return collectResults(facts.key, entries);
}

interface Compared {
  readonly comparison: RunComparison;
  readonly left: EpisodeList;
  readonly right: EpisodeList;
}

function drawComparison(app: ViewerApp, route: CompareRoute, compared: Compared): TemplateResult {
  const { comparison } = compared;
  const [a, b] = [comparison.a, comparison.b].map(visibleText) as [string, string];
  const { averageReward, difference, winCount, lossCount, tieCount, pValue } = comparison;
  const isByChange = route.order === "change";
  const tasks = isByChange
    ? comparison.tasks.toSorted((x, y) => x.b - x.a - (y.b - y.a))
    : comparison.tasks;
  return html`<header class="run-head">
      <div>
        <h1>${a} and ${b}</h1>
        <p>
          ${b} is better at <b>${winCount}</b> tasks, worse at <b>${lossCount}</b>, the same at
          <b>${tieCount}</b>. Its mean reward is ${averageReward.b.toFixed(3)}, that of ${a}
          ${averageReward.a.toFixed(3)}: ${signed(difference.value)} (95 %:
          ${describeInterval(difference, signed)}), p = ${pValue.toPrecision(2)} (${comparison.test}
          test).
        </p>
        ${leftOut(comparison)}
      </div>
      <div class="choices" role="group" aria-label="order">
        ${choice(app, {
          label: "by task",
          isOn: !isByChange,
          choose: () => app.go({ ...route, order: "" }, { replace: true }),
        })}
        ${choice(app, {
          label: "worst change first",
          isOn: isByChange,
          choose: () => app.go({ ...route, order: "change" }, { replace: true }),
        })}
      </div>
    </header>
    ${settingTable(app, route, [compared.left, compared.right])}
    <div class="scrolled" tabindex="0" role="region" aria-label="tasks">
      <table class="comparison">
        <thead>
          <tr>
            <th>task</th>
            <th>${a}</th>
            <th>${b}</th>
            <th>change</th>
          </tr>
        </thead>
        <tbody>
          ${tasks.map((task) => taskRow(route, compared, task))}
        </tbody>
      </table>
    </div>`;
}

/** Names the tasks and attempts that the comparison leaves out. */
function leftOut(comparison: RunComparison) {
  const { onlyInA, onlyInB, unscored, branches = { a: 0, b: 0 } } = comparison;
  const [a, b] = [comparison.a, comparison.b].map(visibleText);
  const parts: readonly (readonly [number, string])[] = [
    [onlyInA, `tasks that only ${a} scored`],
    [onlyInB, `tasks that only ${b} scored`],
    [unscored.a, `attempts of ${a} without a score`],
    [unscored.b, `attempts of ${b} without a score`],
    [branches.a + branches.b, "attempts that branch from others"],
  ];
  const named = parts.filter(([count]) => count > 0);
  return named.length === 0
    ? nothing
    : html`<p class="faint">
        Left out: ${named.map(([count, what]) => `${formatCount(count)} ${what}`).join(", ")}.
      </p>`;
}

function taskRow(route: CompareRoute, { left, right }: Compared, task: TaskComparison) {
  const { taskIndex, taskId, a, b, verdict } = task;
  const cell = (run: string, list: EpisodeList, mean: number, name: string) => {
    const group = list.entries.find((entry) => entry.taskId === taskId)?.groupId;
    return html`<td>
      ${
        group === undefined
          ? mean.toFixed(3)
          : html`<a class=${name} href=${linkTo({ page: "group", run, group, base: 0 })}
              >${mean.toFixed(3)}</a
            >`
      }
    </td>`;
  };
  const sign = { better: "▲", worse: "▼", same: "=" }[verdict];
  return html`<tr class="verdict-${verdict}" data-task=${taskIndex}>
    <th scope="row">${visibleText(taskId)}</th>
    ${cell(route.run, left, a, "first-run")} ${cell(route.other, right, b, "second-run")}
    <td>${sign} ${verdict === "same" ? "same" : signed(b - a)}</td>
  </tr>`;
}

function signed(value: number): string {
  return `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(3)}`;
}
