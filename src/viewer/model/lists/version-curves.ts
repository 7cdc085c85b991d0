import { isSuccessful } from "../../../report/trial-result.ts";
import type { EpisodeEntry } from "../episode-entry.ts";
import { groupEpisodes } from "./group-entry.ts";
import { componentNames, componentTitle } from "./run-figures.ts";

/** A point of a curve: the mean of a figure over the episodes, or groups, that a version of the policy sampled first. */
interface VersionPoint {
  readonly version: string;
  readonly value: number;
  /** The number of episodes, or of groups. */
  readonly count: number;
}

/** A figure by the version of the policy. */
export interface VersionCurve {
  readonly title: string;
  /** The points of the curve, in the order of the versions. */
  readonly points: readonly VersionPoint[];
}

/** Returns an episode's value for a curve; `undefined` if the episode has none. */
type ValueOf = (entry: EpisodeEntry) => number | undefined;

type Figure = readonly [title: string, valueOf: ValueOf];

/**
 * Returns the curves of a training run over the versions of the policy. An episode counts for the first version that
 * sampled it. Returns none with fewer than two versions. Leaves out curves that are 0 everywhere, or the same as the
 * reward's.
 */
export function versionCurves(entries: readonly EpisodeEntry[]): readonly VersionCurve[] {
  const versionOf = ({ versions }: EpisodeEntry): string | undefined => versions?.[0];
  const success: Figure = [
    "success",
    (entry) => (entry.reward === undefined ? undefined : Number(isSuccessful(entry))),
  ];
  const figures: readonly Figure[] = [
    ["turns", ({ turnCount }) => turnCount],
    ["sampled tokens", ({ sampledTokenCount }) => sampledTokenCount],
    ["malformed turns", ({ formatErrorCount }) => formatErrorCount],
    ["cut off", ({ outcome }) => Number(outcome === "truncated")],
    ["failed", ({ outcome }) => Number(outcome === "failed")],
    ["stale versions", ({ staleness }) => staleness],
  ];
  const titles = ["reward", ...[success, ...figures].map(([title]) => title)];
  const components = componentNames(entries).map((name): Figure => [
    componentTitle(name, titles),
    (entry) => entry.components?.[name],
  ]);
  const reward = curveOf("reward", entries, versionOf, ({ reward }) => reward);
  if (new Set(entries.map(versionOf)).size < 2 || reward.points.length < 2) return [];
  const groups = groupEpisodes(entries).filter(({ scoredCount }) => scoredCount > 1);
  const alike = curveOf(
    "groups with equal rewards",
    groups,
    ({ attempts }) => versionOf(attempts[0]!),
    ({ isDegenerate }) => Number(isDegenerate),
  );
  const others = [success, ...components, ...figures].map(([title, valueOf]) =>
    curveOf(title, entries, versionOf, valueOf),
  );
  return [reward, ...others, alike].filter(
    (curve) => curve === reward || !(isZero(curve) || isEqual(curve, reward)),
  );
}

function isZero({ points }: VersionCurve): boolean {
  return points.every(({ value }) => value === 0);
}

function isEqual(left: VersionCurve, right: VersionCurve): boolean {
  return (
    left.points.length === right.points.length &&
    left.points.every(({ value }, index) => value === right.points[index]!.value)
  );
}

const collator = new Intl.Collator("en", { numeric: true });

function curveOf<Item>(
  title: string,
  items: readonly Item[],
  versionOf: (item: Item) => string | undefined,
  valueOf: (item: Item) => number | undefined,
): VersionCurve {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const item of items) {
    const [version, value] = [versionOf(item), valueOf(item)];
    if (version === undefined || value === undefined) continue;
    const own = sums.get(version) ?? { sum: 0, count: 0 };
    sums.set(version, { sum: own.sum + value, count: own.count + 1 });
  }
  const points = [...sums]
    .map(([version, { sum, count }]) => ({ version, value: sum / count, count }))
    .sort((left, right) => collator.compare(left.version, right.version));
  return { title, points };
}
