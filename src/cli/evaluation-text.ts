import { rowsText } from "./rows-text.ts";
import path from "node:path";
import { countAsFailed } from "../report/count-as-failed.ts";
import type { Evaluation } from "../report/evaluation.ts";
import { describeRoles, describeRows } from "../report/rows/describe-rows.ts";
import type { RowsEvaluation } from "../report/rows/rows-evaluation.ts";
import { describeInterval } from "../report/statistics/describe-interval.ts";
import type { Estimate } from "../report/statistics/interval.ts";
import { printable } from "../report/text-style.ts";
import { evaluationFiles } from "../run/folder/evaluation-files.ts";
import { formatCount } from "../text/format-count.ts";

/** The highest k for which pass^k and pass@k are printed, besides the number of all attempts. */
const mostShown = 8;

/** Formats an evaluation for people. */
export function printEvaluation(evaluation: Evaluation, dir: string): string {
  const { episodes, averageReward, passHatK, passAtK } = evaluation;
  const rows: (readonly [string, string])[] = [
    ["tasks", `${evaluation.taskCount} of ${evaluation.environment}, ${evaluation.split}`],
    ["attempts", `${episodes.scored} scored of ${episodes.planned} planned`],
  ];
  if (averageReward !== undefined) rows.push(["average reward", describe(averageReward)]);
  rows.push(...describeComponents(evaluation));
  const { trialCount } = evaluation;
  const rule = describeSuccess(evaluation);
  if (rule !== undefined) rows.push(["success", rule]);
  for (let k = 1; k <= trialCount; k++) {
    if (k > mostShown && k < trialCount) continue;
    const [hat, at] = [passHatK[k], passAtK[k]];
    if (hat !== undefined) rows.push([`pass^${k}`, describe(hat)]);
    if (at !== undefined && k > 1) rows.push([`pass@${k}`, describe(at)]);
  }
  if (trialCount > mostShown + 1) rows.push(["other k", "in the report"]);
  if (episodes.unscored > 0) {
    const counted = countAsFailed(evaluation)?.successShare;
    const asFailed =
      counted === undefined ? "" : `; counted as failed, pass^1 is ${counted.toFixed(3)}`;
    const reasons = counts(episodes.unscoredBy);
    rows.push([
      "without score",
      `${episodes.unscored} (${reasons}), left out of the figures${asFailed}`,
    ]);
  }
  if (episodes.branches !== undefined) {
    rows.push([
      "left out",
      `branches ×${episodes.branches}: each shares the beginning of another attempt, so it is not a trial of its own`,
    ]);
  }
  rows.push(...describeTrouble(evaluation), ...describeEffort(evaluation));
  if (evaluation.rows !== undefined) rows.push(...describeTraining(evaluation.rows));
  rows.push(["report", path.join(dir, evaluationFiles.report)]);
  rows.push(["for τ-bench", path.join(dir, evaluationFiles.tauBenchResults)]);
  return `\n${rowsText(rows)}`;
}

/** Describes the components of the rewards. A weight of 1 is not shown. */
function describeComponents({ components = {} }: Evaluation): [string, string][] {
  return Object.entries(components).map(([name, { mean, weight }], index) => {
    const times =
      weight === undefined ? ", weights differ" : weight === 1 ? "" : `, weight ${weight}`;
    return [
      index === 0 ? "components" : "",
      `${printable(name.replace(/\s+/g, " "))} ${describe(mean)}${times}`,
    ];
  });
}

/** Describes the rule of a success. `undefined` if the usual rule decides, and rewards show that it fits. */
function describeSuccess({ successThreshold, tasks }: Evaluation): string | undefined {
  if (successThreshold !== undefined) return `a reward of ${successThreshold} or more`;
  const trials = tasks.flatMap((task) => task.trials).filter(({ reward }) => reward !== undefined);
  if (trials.some(({ success }) => success !== undefined)) return "as the environment says";
  const isShaped = trials.some(({ reward }) => reward !== 0 && reward !== 1);
  if (!isShaped) return undefined;
  return "a reward of exactly 1; other rewards occur, see --success-threshold";
}

function describeTrouble({ missCounts, failures }: Evaluation): [string, string][] {
  const misses = counts({
    "state not as wanted": missCounts.wrongState,
    "output not said": missCounts.missingOutputs,
    "not ended": missCounts.notEnded,
    "not known": missCounts.other,
  });
  const parties = counts(failures.byParty);
  return [
    ...(misses === "" ? [] : [["no success", misses] as [string, string]]),
    ...(parties === ""
      ? []
      : [["failed", `${parties} (${counts(failures.byCode)})`] as [string, string]]),
  ];
}

function describeEffort({
  tokens,
  unmeteredTurnCount,
  costUsd,
  time,
}: Evaluation): [string, string][] {
  const costs = Object.entries(costUsd).map(([who, usd]) => `${who} $${usd.toFixed(4)}`);
  return [
    [
      "tokens",
      `${formatCount(tokens.sampled)} sampled, ${formatCount(tokens.prompt)} of prompts${cachedOf(tokens)}, ` +
        `${formatCount(tokens.userInput + tokens.userOutput)} of the user's model`,
    ],
    ...(unmeteredTurnCount === undefined
      ? []
      : [
          ["not counted", `tokens of ${unmeteredTurnCount} turns: the engine reports none`] as [
            string,
            string,
          ],
        ]),
    ...(costs.length === 0 ? [] : [["cost", costs.join(", ")] as [string, string]]),
    [
      "time",
      `${(time.spanMs / 1000).toFixed(1)} s in all, ` +
        `${((time.episodeMs?.mean ?? 0) / 1000).toFixed(1)} s an episode`,
    ],
  ];
}

/** Describes the training rows of a run in which attempts have several. */
function describeTraining(rows: RowsEvaluation): (readonly [string, string])[] {
  const roles = describeRoles(rows.byRole).map(
    ([role, rowCount, turnCount, tokenCount, share, , reward]) =>
      `${role}: rows ${rowCount}, turns ${turnCount}, trained tokens ${tokenCount} (${share}), mean reward ${reward}`,
  );
  return [
    ...describeRows(rows),
    ...roles.map((text, index) => [index === 0 ? "by role" : "", text] as const),
  ];
}

function cachedOf({ cachedPrompt }: Evaluation["tokens"]): string {
  return cachedPrompt === 0 ? "" : ` (${formatCount(cachedPrompt)} cached)`;
}

function describe(estimate: Estimate): string {
  return `${estimate.value.toFixed(3)}  (95 %: ${describeInterval(estimate)})`;
}

function counts(byName: Readonly<Partial<Record<string, number>>>): string {
  return Object.entries(byName)
    .filter(([, count]) => (count ?? 0) > 0)
    .map(([name, count]) => `${name} ×${count}`)
    .join(", ");
}
