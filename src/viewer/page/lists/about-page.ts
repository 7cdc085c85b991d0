import { html, nothing, type TemplateResult } from "lit/html.js";
import { countOf } from "../../../text/count-of.ts";
import { namesOf } from "../../../columns/column-specs.ts";
import { describeInterval } from "../../../report/statistics/describe-interval.ts";
import type { Estimate } from "../../../report/statistics/interval.ts";
import type { AboutRun } from "../../model/about-run.ts";
import { describeNumbers } from "../../../values/describe-numbers.ts";
import { episodeFields } from "../../model/lists/episode-filter.ts";
import type { Route } from "../../model/route.ts";
import { dateText } from "../../model/lists/run-fields.ts";
import type { RunFigures } from "../../model/lists/run-figures.ts";
import { columnWords } from "../../model/side-columns.ts";
import { versionCurves } from "../../model/lists/version-curves.ts";
import { visibleText } from "../../model/visible-text.ts";
import { versionChart } from "./charts.ts";
import { successRule } from "../../model/lists/success-rule.ts";
import { listFigures } from "./list-figures.ts";
import { formatNumber, stateBadge, whenReady } from "../parts.ts";
import { runTabs } from "./run-tabs.ts";
import { valueTable } from "../value-table.ts";
import type { EpisodeList, ViewerApp } from "../viewer-app.ts";

type AboutRoute = Extract<Route, { page: "about" }>;

/** Renders a run's figures, its curves over versions of the policy, and its settings. */
export function aboutPage(app: ViewerApp, route: AboutRoute): TemplateResult {
  return whenReady(app.list(route.run), (list) => {
    const figures = listFigures(list);
    return html`<div class="about-page">
      <header class="run-head">
        <h1>${visibleText(list.facts.key)} ${stateBadge(list.facts.state)}</h1>
      </header>
      ${runTabs(app.lastList(route.run), "about")} ${curves(list)}
      <div class="about-parts">
        ${facts(app, list)} ${rewards(figures, successRule(list))} ${distributions(list)}
        ${whenReady(app.about(route.run), (about) => settings(app, about))}
      </div>
    </div>`;
  });
}

function facts(app: ViewerApp, { facts, entries }: EpisodeList): TemplateResult {
  const { environment, split, engine, model, dir, turnwright, columns, planned } = facts;
  const startedAtMs = entries.reduce(
    (first, entry) => Math.min(first, entry.startedAtMs),
    Infinity,
  );
  const count = (outcome: string) => entries.filter((entry) => entry.outcome === outcome).length;
  return part(
    "Run",
    valueTable(app, "run", {
      folder: dir,
      ...(entries.length > 0 && { started: dateText(startedAtMs) }),
      ...(environment !== undefined && { environment }),
      ...(split !== undefined && { split }),
      ...(engine !== undefined && { engine }),
      ...(model !== undefined && { model }),
      turnwright,
      ...(columns !== undefined && {
        "side columns": namesOf(columns)
          .map((name) => columnWords[name].title)
          .join(", "),
      }),
      episodes:
        planned === undefined
          ? formatNumber(entries.length)
          : `${formatNumber(entries.length)} of ${formatNumber(planned)}`,
      ...Object.fromEntries(
        (
          [
            ["completed", "completed"],
            ["cut off", "truncated"],
            ["failed", "failed"],
            ["interrupted", "aborted"],
          ] as const
        ).map(([name, outcome]) => [name, formatNumber(count(outcome))]),
      ),
    }),
  );
}

function part(title: string, content: TemplateResult): TemplateResult {
  return html`<section class="about-part" aria-label=${title}>
    <h2>${title}</h2>
    ${content}
  </section>`;
}

/** Renders the mean reward, its components and pass^k, with intervals. */
function rewards(
  { averageReward, components, passHatK, passAtK, taskCount, scoredCount }: RunFigures,
  rule = "a success has the reward 1",
) {
  if (averageReward === undefined) return part("Reward", html`<p>No episode is scored.</p>`);
  const rows: readonly (readonly [string, Estimate])[] = [
    ["mean reward", averageReward],
    ...Object.entries(components),
    ...Object.entries(passHatK).map(([k, estimate]) => [`pass^${k}`, estimate] as const),
    ...Object.entries(passAtK)
      .filter(([k]) => k !== "1")
      .map(([k, estimate]) => [`pass@${k}`, estimate] as const),
  ];
  return part(
    "Reward",
    html`<p class="faint">
        ${countOf(scoredCount, "scored attempt")} at ${countOf(taskCount, "task")}. Means are taken
        over tasks. For pass^k, ${rule}.
      </p>
      <table class="values numbers">
        <thead>
          <tr>
            <th>figure</th>
            <th>value</th>
            <th>95 % interval</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ([name, estimate]) =>
              html`<tr data-figure=${name}>
                <th scope="row">${visibleText(name)}</th>
                <td>${estimate.value.toFixed(3)}</td>
                <td>${describeInterval(estimate)}</td>
              </tr>`,
          )}
        </tbody>
      </table>`,
  );
}

const described = ["turns", "calls", "malformed", "sampled", "tokens", "rows", "stale", "seconds"];

/** Renders the distribution of each figure over the episodes. */
function distributions({ entries }: EpisodeList) {
  const rows = described.flatMap((name) => {
    const { title, meaning, valueOf } = episodeFields.find((field) => field.name === name)!;
    const numbers = describeNumbers(
      entries.flatMap((entry) => {
        const value = valueOf(entry);
        return typeof value === "number" ? [value] : [];
      }),
    );
    return numbers === undefined ? [] : [{ title, meaning, numbers }];
  });
  if (rows.length === 0) return nothing;
  return part(
    "Per episode",
    html`<table class="values numbers">
      <thead>
        <tr>
          <th>figure</th>
          <th>mean</th>
          <th>median</th>
          <th>95 %</th>
          <th>most</th>
          <th>sum</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ({ title, meaning, numbers: { mean, median, p95, max, sum } }) =>
            html`<tr>
              <th scope="row" title=${meaning}>${title}</th>
              ${[mean, median, p95, max, sum].map((value) => html`<td>${formatNumber(value)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>`,
  );
}

/** Renders the curves of a training run. */
function curves({ entries }: EpisodeList) {
  const found = versionCurves(entries);
  if (found.length === 0) return nothing;
  return html`<section class="about-part about-curves" aria-label="by policy version">
    <h2>By policy version</h2>
    <p class="faint">
      The mean over the episodes that each version of the policy began. Point at a place for its
      value.
    </p>
    <div class="curves">${found.map(versionChart)}</div>
  </section>`;
}

function settings(app: ViewerApp, { settings, configuration, identity, summary }: AboutRun) {
  return html`${summary === undefined ? nothing : part("summary.json", valueTable(app, "summary", summary))}
  ${part("Settings", valueTable(app, "settings", { ...configuration, ...settings }))}
  ${
    identity === undefined
      ? nothing
      : part("Identity: what decides tokens and rewards", valueTable(app, "identity", identity))
  }`;
}
