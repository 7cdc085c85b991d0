import { html, nothing, type TemplateResult } from "lit/html.js";
import type { EpisodeEntry } from "../../model/episode-entry.ts";
import { histogram, type HistogramBin } from "../../model/lists/histogram.ts";
import { quoted, type ListField } from "../../model/lists/list-fields.ts";
import { versionCurves, type VersionCurve } from "../../model/lists/version-curves.ts";
import { visibleText } from "../../model/visible-text.ts";
import { formatNumber } from "../parts.ts";
import { mean } from "../../../values/sum.ts";

const binCount = 12;

/** Renders a histogram. A click on a bin filters the list. */
export function fieldHistogram(
  entries: readonly EpisodeEntry[],
  field: ListField<EpisodeEntry>,
  choose: (condition: string) => void,
): TemplateResult {
  const { name } = field;
  const values = entries.flatMap((entry) => {
    const value = field.valueOf(entry);
    return typeof value === "number" ? [value] : [];
  });
  return html`<figure class="histogram" data-field=${name}>
    <figcaption>${visibleText(field.title)}</figcaption>
    ${isAlike(values) ? alike(values) : bars(field, values, choose)}
  </figure>`;
}

function isAlike(values: readonly number[]): boolean {
  return values.every((value) => value === values[0]);
}

/** Renders a value that all episodes share. A bar would look like several values. */
function alike(values: readonly number[]): TemplateResult {
  const [value] = values;
  if (value === undefined) return html`<p class="alike faint">no values</p>`;
  return html`<p class="alike">
    <b>${formatNumber(value)}</b>
    <span class="faint"
      >${values.length === 1 ? "in 1 episode" : `in all ${formatNumber(values.length)} episodes`}</span
    >
  </p>`;
}

/** Renders the bars of a histogram with the ends of its axis. */
function bars(
  { name, title }: ListField<EpisodeEntry>,
  values: readonly number[],
  choose: (condition: string) => void,
): TemplateResult {
  const bins = histogram(values, binCount);
  const most = Math.max(...bins.map(({ count }) => count));
  return html`<div class="bins">
      ${bins.map(
        (bin) =>
          html`<button
            type="button"
            class="bin"
            ?disabled=${bin.count === 0}
            title=${`${binName(bin)}: ${bin.count}`}
            aria-label=${`${title} ${binName(bin)}: ${bin.count} episodes`}
            @click=${() => choose(binCondition(name, bin))}
          >
            <span .style=${`height:${((bin.count / most) * 100).toFixed(1)}%`}></span>
          </button>`,
      )}
    </div>
    <div class="axis">
      <span>${formatNumber(bins[0]!.from)}</span>
      <span>${formatNumber(lastValue(bins, values))}</span>
    </div>`;
}

function lastValue(bins: readonly HistogramBin[], values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), bins[0]!.from);
}

function binName({ from, to, isLast }: HistogramBin): string {
  return isLast
    ? `${formatNumber(from)} or more`
    : `${formatNumber(from)} to below ${formatNumber(to)}`;
}

function binCondition(fieldName: string, { from, to, isLast }: HistogramBin): string {
  const name = quoted(fieldName);
  return isLast ? `${name}>=${from}` : `${name}>=${from} ${name}<${to}`;
}

const points = 60;

/**
 * Renders the mean reward in up to sixty consecutive parts of the episodes, in the order in which
 * they ended.
 */
export function rewardOverTime(entries: readonly EpisodeEntry[]): TemplateResult | typeof nothing {
  const scored = entries
    .toSorted((left, right) => left.order - right.order)
    .flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
  if (scored.length < 4) return nothing;
  const size = Math.ceil(scored.length / points);
  const means: number[] = [];
  const names: string[] = [];
  for (let start = 0; start < scored.length; start += size) {
    const part = scored.slice(start, start + size);
    means.push(mean(part));
    names.push(`scored episodes ${start + 1} to ${start + part.length}`);
  }
  return lineChart("reward, as episodes ended", means, names, ["first", "last"]);
}

/** Renders the mean reward by version of the policy. Renders nothing for a single version. */
export function rewardOverVersions(
  entries: readonly EpisodeEntry[],
): TemplateResult | typeof nothing {
  const [reward] = versionCurves(entries);
  return reward === undefined
    ? nothing
    : versionChart({ ...reward, title: "reward by policy version" });
}

/** Renders a figure by version of the policy. */
export function versionChart({ title, points: found }: VersionCurve): TemplateResult {
  return lineChart(
    title,
    found.map(({ value }) => value),
    found.map(({ version, count }) => `version ${version}, ${formatNumber(count)} of them`),
    [found[0]?.version ?? "", found.at(-1)?.version ?? ""],
  );
}

/**
 * Renders values as a line. The scale has 0 and all values.
 *
 * @param names - The name of each value.
 * @param ends - The names below the ends of the line.
 */
function lineChart(
  title: string,
  values: readonly number[],
  names: readonly string[],
  [first, last]: readonly [string, string],
): TemplateResult {
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  const place = (value: number, index: number): string => {
    const x = values.length === 1 ? 50 : (index / (values.length - 1)) * 100;
    return `${x.toFixed(2)},${(40 - ((value - low) / (high - low || 1)) * 38 - 1).toFixed(2)}`;
  };
  const line = values.map(place).join(" ");
  const range = describeEnds(values);
  return html`<figure class="line-chart" data-chart=${title}>
    <figcaption>${visibleText(title)} <b>${range}</b></figcaption>
    <div class="plot">
      <span class="high">${formatNumber(high)}</span><span class="low">${formatNumber(low)}</span>
      <svg
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label=${`${title}: ${range}`}
      >
        <polyline points=${line} vector-effect="non-scaling-stroke"></polyline>
      </svg>
      <div class="places">
        ${values.map(
          (value, index) => html`<span title=${`${names[index]}: ${formatNumber(value)}`}></span>`,
        )}
      </div>
    </div>
    <div class="axis"><span>${first}</span><span>${last}</span></div>
  </figure>`;
}

/** Describes the first and the last value of a line. */
function describeEnds(values: readonly number[]): string {
  const [first, last] = [formatNumber(values[0]!), formatNumber(values.at(-1)!)];
  if (values.length === 1) return first;
  if (values.every((value) => value === values[0])) return `always ${first}`;
  return `first ${first}, last ${last}`;
}
