import { html, type TemplateResult } from "lit/html.js";
import { collectResults, type RunResults } from "../../report/collect-results.ts";
import { compareRuns, type RunComparison, type TaskComparison } from "../../report/compare-runs.ts";
import { describeInterval } from "../../report/statistics/describe-interval.ts";
import { linkTo, type Route } from "../model/route.ts";
import { visibleText } from "../model/visible-text.ts";
import { choice, whenReady } from "./parts.ts";
import type { EpisodeList, ViewerApp } from "./viewer-app.ts";

type CompareRoute = Extract<Route, { page: "compare" }>;

/** Renders the comparison of two runs, task by task. */
export function comparePage(app: ViewerApp, route: CompareRoute): TemplateResult {
  return whenReady(app.list(route.run), (left) =>
    whenReady(app.list(route.other), (right) => {
      let comparison: RunComparison;
      try {
        comparison = compareRuns(resultsOf(left), resultsOf(right));
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return html`<p class="broken" role="alert">${message}</p>`;
      }
      return drawComparison(app, route, { comparison, left, right });
    }),
  );
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
  const { a, b, averageReward, difference, winCount, lossCount, tieCount, pValue } = comparison;
  const isByChange = route.order === "change";
  const tasks = isByChange
    ? comparison.tasks.toSorted((x, y) => x.b - x.a - (y.b - y.a))
    : comparison.tasks;
  return html`<div class="compare-page">
    <header class="run-head">
      <div>
        <h1>${a} and ${b}</h1>
        <p>
          ${b} is better at <b>${winCount}</b> tasks, worse at <b>${lossCount}</b>, the same at
          <b>${tieCount}</b>. Its mean reward is ${averageReward.b.toFixed(3)}, that of ${a}
          ${averageReward.a.toFixed(3)}: ${signed(difference.value)} (95 %:
          ${describeInterval(difference, signed)}), p = ${pValue.toPrecision(2)} (${comparison.test}
          test).
        </p>
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
    </div>
  </div>`;
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
