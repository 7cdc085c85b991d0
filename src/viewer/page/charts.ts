import { html, nothing, type TemplateResult } from "lit/html.js";
import type { EpisodeEntry, EpisodeVersions } from "../model/episode-entry.ts";
import { episodeFields } from "../model/episode-filter.ts";
import { histogram, type HistogramBin } from "../model/histogram.ts";
import { formatNumber } from "./parts.ts";

const binCount = 12;

/** Renders a histogram. A click on a bin filters the list. */
export function fieldHistogram(
  entries: readonly EpisodeEntry[],
  name: string,
  choose: (condition: string) => void,
): TemplateResult {
  const field = episodeFields.find((candidate) => candidate.name === name)!;
  const values = entries.flatMap((entry) => {
    const value = field.valueOf(entry, []);
    return typeof value === "number" ? [value] : [];
  });
  const bins = histogram(values, binCount);
  const most = Math.max(1, ...bins.map(({ count }) => count));
  return html`<figure class="histogram" data-field=${name}>
    <figcaption>${field.title}</figcaption>
    <div class="bins">
      ${bins.map(
        (bin) =>
          html`<button
            type="button"
            class="bin"
            ?disabled=${bin.count === 0}
            title=${`${binName(bin)}: ${bin.count}`}
            aria-label=${`${field.title} ${binName(bin)}: ${bin.count} episodes`}
            @click=${() => choose(binCondition(name, bin))}
          >
            <span .style=${`height:${((bin.count / most) * 100).toFixed(1)}%`}></span>
          </button>`,
      )}
    </div>
    <div class="axis">
      <span>${bins.length === 0 ? "no values" : formatNumber(bins[0]!.from)}</span>
      <span>${bins.length === 0 ? "" : formatNumber(lastValue(bins, values))}</span>
    </div>
  </figure>`;
}

function lastValue(bins: readonly HistogramBin[], values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), bins[0]!.from);
}

function binName({ from, to, isLast }: HistogramBin): string {
  return isLast
    ? `${formatNumber(from)} or more`
    : `${formatNumber(from)} to below ${formatNumber(to)}`;
}

function binCondition(name: string, { from, to, isLast }: HistogramBin): string {
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
  for (let start = 0; start < scored.length; start += size) {
    means.push(mean(scored.slice(start, start + size)));
  }
  return lineChart("reward, as episodes ended", means, "first", "last");
}

/**
 * Renders the mean reward by the first version that sampled an episode. Renders nothing for a
 * single version.
 */
export function rewardOverVersions(
  entries: readonly EpisodeEntry[],
  versions: EpisodeVersions,
): TemplateResult | typeof nothing {
  const rewards = new Map<string, number[]>();
  for (const { rolloutId, reward } of entries) {
    const version = versions[rolloutId]?.[0];
    if (version === undefined || reward === undefined) continue;
    const known = rewards.get(version);
    if (known === undefined) rewards.set(version, [reward]);
    else known.push(reward);
  }
  if (rewards.size < 2) return nothing;
  const collator = new Intl.Collator("en", { numeric: true });
  const names = [...rewards.keys()].sort((left, right) => collator.compare(left, right));
  const means = names.map((name) => mean(rewards.get(name)!));
  return lineChart("reward by policy version", means, names[0]!, names.at(-1)!);
}

function lineChart(title: string, values: readonly number[], first: string, last: string) {
  const low = Math.min(0, ...values);
  const high = Math.max(1, ...values);
  const place = (value: number, index: number): string => {
    const x = values.length === 1 ? 50 : (index / (values.length - 1)) * 100;
    return `${x.toFixed(2)},${(40 - ((value - low) / (high - low || 1)) * 38 - 1).toFixed(2)}`;
  };
  const line = values.map(place).join(" ");
  const range = `from ${formatNumber(values[0]!)} to ${formatNumber(values.at(-1)!)}`;
  return html`<figure class="line-chart">
    <figcaption>${title}</figcaption>
    <svg
      viewBox="0 0 100 40"
      preserveAspectRatio="none"
      role="img"
      aria-label=${`${title}: ${range}`}
    >
      <polyline points=${line} vector-effect="non-scaling-stroke"></polyline>
    </svg>
    <div class="axis"><span>${first}</span><span>${range}</span><span>${last}</span></div>
  </figure>`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
