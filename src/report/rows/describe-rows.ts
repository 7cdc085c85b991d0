import { countOf } from "../../text/count-of.ts";
import type { AttemptFigure, RoleEvaluation, RowsEvaluation } from "./rows-evaluation.ts";
import { describeRole } from "./lineage-words.ts";
import { formatCount } from "../../text/format-count.ts";

/** The texts of a report's figures on rows: names and texts, in order. */
export function describeRows({
  attemptCount,
  severalRowsCount,
  rowCount,
  trainedTokenCount,
  rowsPerAttempt,
  trainedTokensPerAttempt,
  edges,
  untrained,
}: RowsEvaluation): readonly (readonly [name: string, text: string])[] {
  const { turnCount, sampledTokenCount } = untrained;
  return [
    ["attempts with several rows", `${severalRowsCount} of ${attemptCount}`],
    ["rows", `${formatCount(rowCount)} (${perAttempt(rowsPerAttempt)})`],
    [
      "trained tokens",
      `${formatCount(trainedTokenCount)} (${perAttempt(trainedTokensPerAttempt)})`,
    ],
    ["links", countsOf(edges)],
    [
      "sampled, not trained",
      turnCount === 0
        ? "–"
        : `${countOf(turnCount, "turn")} with ${countOf(sampledTokenCount, "token")}: ${countsOf(untrainedReasons(untrained))}`,
    ],
  ];
}

/** The figures on one role, in the order of `roleHead`. */
export function describeRoles(byRole: RowsEvaluation["byRole"]): readonly (readonly string[])[] {
  return Object.entries(byRole).map(([role, figures]) => roleCells(role, figures));
}

/** The headings of `describeRoles()`. */
export const roleHead: readonly string[] = [
  "role",
  "rows",
  "turns",
  "trained tokens",
  "of all",
  "attempts",
  "mean reward",
];

function roleCells(role: string, figures: RoleEvaluation): readonly string[] {
  const { rowCount, turnCount, trainedTokenCount, trainedTokenShare } = figures;
  const { attemptCount, averageReward } = figures;
  return [
    describeRole(role),
    formatCount(rowCount),
    formatCount(turnCount),
    formatCount(trainedTokenCount),
    `${(100 * trainedTokenShare).toFixed(1)} %`,
    formatCount(attemptCount),
    averageReward === undefined ? "–" : averageReward.toFixed(3),
  ];
}

function untrainedReasons({
  rejected,
  undelivered,
  other,
}: RowsEvaluation["untrained"]): Readonly<Record<string, number>> {
  return {
    ...Object.fromEntries(
      Object.entries(rejected).map(([evidence, count]) => [`rejected (${evidence})`, count]),
    ),
    undelivered,
    "other model or left-out row": other,
  };
}

function perAttempt({ mean, max }: AttemptFigure): string {
  return `${mean.toFixed(1)} an attempt, at most ${formatCount(max)}`;
}

function countsOf(byName: Readonly<Partial<Record<string, number>>>): string {
  const known = Object.entries(byName).filter(([, count]) => (count ?? 0) > 0);
  return known.length === 0 ? "–" : known.map(([name, count]) => `${name} ×${count}`).join(", ");
}
