import { describeDifference } from "./describe-difference.ts";
import { countAsFailed } from "./count-as-failed.ts";
import type { Evaluation, Miss, TaskEvaluation, TrialEvaluation } from "./evaluation.ts";
import { describeRoles, describeRows, roleHead } from "./rows/describe-rows.ts";
import { describeInterval } from "./statistics/describe-interval.ts";
import type { Estimate } from "./statistics/interval.ts";
import { isSuccessful } from "./trial-result.ts";
import { formatCount } from "../text/format-count.ts";

/** The run's settings in a report: names and values, in order. */
export type ReportSetup = readonly (readonly [name: string, value: string])[];

/** Renders an evaluation as a Markdown page. */
export function renderMarkdownReport(evaluation: Evaluation, setup: ReportSetup): string {
  const { environment, split } = evaluation;
  return (
    [
      `# Evaluation of ${environment}, ${split}`,
      table(
        ["", ""],
        setup.map(([name, value]) => [name, code(value)]),
      ),
      "## Result",
      renderHeadline(evaluation),
      ...renderComponents(evaluation),
      renderPasses(evaluation),
      explanation,
      "## Episodes",
      renderEpisodes(evaluation),
      "## Effort",
      renderEffort(evaluation),
      ...renderRows(evaluation.rows),
      "## Tasks",
      renderTasks(evaluation.tasks),
      ...renderMisses(evaluation),
      ...renderUnscored(evaluation.tasks),
    ].join("\n\n") + "\n"
  );
}

const explanation =
  "Intervals are 95 % intervals over tasks, each with the name of its method. pass^k is the probability\n" +
  "that k attempts at a task all succeed, pass@k that one of k succeeds; both are unbiased estimates over the\n" +
  "tasks with at least k scored attempts. The column\n" +
  "τ-bench has τ-bench's own formula: an attempt without a score counts as failed, but a task without a\n" +
  "finished attempt is ignored.";

function renderHeadline(evaluation: Evaluation): string {
  const { averageReward, episodes } = evaluation;
  const { planned, scored, unscored, unscoredBy, branches } = episodes;
  const lines = [
    averageReward === undefined
      ? "No episode is scored."
      : `Average reward **${fixed(averageReward.value)}** (${describeInterval(averageReward)}) over ` +
        `${averageReward.taskCount} tasks, ${scored} scored attempts of ${planned} planned.`,
  ];
  if (evaluation.successThreshold !== undefined) {
    lines.push(`An attempt is a success with a reward of ${evaluation.successThreshold} or more.`);
  }
  if (unscored > 0) {
    const counted = countAsFailed(evaluation)?.averageReward;
    const asFailed =
      counted === undefined ? "" : `: so counted, the average reward is ${fixed(counted)}`;
    lines.push(
      `**${unscored} attempts have no score** (${counts(unscoredBy)}). They are left out of the figures rather than ` +
        `counted as failed${asFailed}.`,
    );
  }
  if (branches !== undefined) {
    lines.push(
      `**${branches} branches are left out** of all that this report says. Each shares the beginning of another ` +
        "attempt, so it is not a trial of its own.",
    );
  }
  return lines.join("\n\n");
}

function renderComponents({ components }: Evaluation): string[] {
  if (components === undefined) return [];
  const rows = Object.entries(components).map(([name, { mean, weight, attemptCount }]) => [
    code(name),
    estimate(mean),
    weight === undefined ? "differs" : String(weight),
    String(attemptCount),
  ]);
  return [table(["component of the reward", "mean", "weight", "attempts"], rows)];
}

function renderPasses({ passHatK, passAtK, tauBench, trialCount }: Evaluation): string {
  const rows = Array.from({ length: trialCount }, (_, index) => {
    const k = String(index + 1);
    const [hat, at] = [passHatK[k], passAtK[k]];
    return [
      k,
      estimate(hat),
      estimate(at),
      hat === undefined ? "0" : String(hat.taskCount),
      tauBench?.passHatK[k] === undefined ? "–" : fixed(tauBench.passHatK[k]),
    ];
  });
  return table(["k", "pass^k", "pass@k", "tasks", "τ-bench pass^k"], rows);
}

function renderEpisodes(evaluation: Evaluation): string {
  const { outcomes, stopReasons, failures, missCounts, episodes } = evaluation;
  return table(
    ["", ""],
    [
      ["finished", `${episodes.finished} of ${episodes.planned}: ${counts(outcomes)}`],
      ["ended by", counts(stopReasons)],
      ["failures by party", counts(failures.byParty)],
      ["failures by code", counts(failures.byCode)],
      [
        "why scored attempts were no success",
        counts({
          "state not as wanted": missCounts.wrongState,
          "output not said": missCounts.missingOutputs,
          "conversation not ended": missCounts.notEnded,
          "not known": missCounts.other,
        }),
      ],
    ],
  );
}

function renderEffort(evaluation: Evaluation): string {
  const { tokens, costUsd, time, episodes } = evaluation;
  const perEpisode = (count: number) =>
    episodes.finished === 0 ? "" : ` (${formatCount(count / episodes.finished)} an episode)`;
  const { episodeMs } = time;
  return table(
    ["", ""],
    [
      ["turns", `${formatCount(evaluation.turnCount)}${perEpisode(evaluation.turnCount)}`],
      [
        "tool calls",
        `${formatCount(evaluation.toolCallCount)}${perEpisode(evaluation.toolCallCount)}`,
      ],
      ["turns with only malformed calls", formatCount(evaluation.formatErrorCount)],
      ["sampled tokens", `${formatCount(tokens.sampled)}${perEpisode(tokens.sampled)}`],
      [
        "prompt tokens",
        `${formatCount(tokens.prompt)}, of these cached ${formatCount(tokens.cachedPrompt)}`,
      ],
      ...(evaluation.unmeteredTurnCount === undefined
        ? []
        : [["turns without token counts", formatCount(evaluation.unmeteredTurnCount)] as const]),
      [
        "user model tokens",
        `${formatCount(tokens.userInput)} in, ${formatCount(tokens.userOutput)} out`,
      ],
      ["cost of the policy", dollars(costUsd.policy)],
      ["cost of the user", dollars(costUsd.user)],
      [
        "time of an episode",
        episodeMs === undefined
          ? "–"
          : `${seconds(episodeMs.mean)} mean, ${seconds(episodeMs.median)} median, ` +
            `${seconds(episodeMs.p95)} at 95 %, ${seconds(episodeMs.max)} longest`,
      ],
      ["time in the engine, all turns", seconds(time.engineMs)],
      ["time in the environment and the user", seconds(time.environmentMs)],
      ["from the first start to the last end", seconds(time.spanMs)],
    ],
  );
}

function renderRows(rows: Evaluation["rows"]): readonly string[] {
  if (rows === undefined) return [];
  return [
    "## Rows",
    "Each figure over attempts counts an attempt once. All rows of an attempt carry its whole reward.",
    table(["", ""], describeRows(rows)),
    table(roleHead, describeRoles(rows.byRole)),
  ];
}

function renderTasks(tasks: readonly TaskEvaluation[]): string {
  return [
    "✓ success, ✗ scored and no success, – finished without a score.",
    table(
      ["task", "average reward", "successes", "attempts"],
      tasks.map(({ taskId, averageReward, successCount, scoredCount, trials }) => [
        code(taskId),
        averageReward === undefined ? "–" : fixed(averageReward),
        `${successCount} of ${scoredCount}`,
        trials.map(mark).join(" "),
      ]),
    ),
  ].join("\n\n");
}

function mark(trial: TrialEvaluation): string {
  if (trial.reward === undefined) return "–";
  return isSuccessful(trial) ? "✓" : "✗";
}

function renderMisses({ misses, missCounts }: Evaluation): readonly string[] {
  if (misses.length === 0) return [];
  const isCut = misses.length < Object.values(missCounts).reduce((sum, count) => sum + count, 0);
  return [
    "## What went wrong",
    ...(isCut
      ? [`The first ${misses.length} are listed; an attempt may have several causes.`]
      : []),
    misses.map(renderMiss).join("\n"),
  ];
}

function renderMiss({ rolloutId, reward, stopReason, difference }: Miss): string {
  const lines = difference === undefined ? [] : describeDifference(difference);
  const shown = lines.slice(0, 10).map((line) => `  - ${code(line)}`);
  const more = lines.length > 10 ? [`  - ${lines.length - 10} more`] : [];
  return [`- ${code(rolloutId)}: reward ${fixed(reward)}, ${stopReason}`, ...shown, ...more].join(
    "\n",
  );
}

function renderUnscored(tasks: readonly TaskEvaluation[]): readonly string[] {
  const unscored = tasks.flatMap(({ trials }) =>
    trials.filter(({ reward }) => reward === undefined),
  );
  if (unscored.length === 0) return [];
  const rows = unscored.map(({ rolloutId, outcome, stopReason, failure }) => [
    code(rolloutId),
    outcome,
    failure ?? stopReason,
  ]);
  return ["## Without a score", table(["attempt", "outcome", "why"], rows)];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Formats a text as code that can break neither its table cell nor its code span. */
function code(text: string): string {
  const plain = text.replaceAll("`", "'").replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
  return plain === "" ? "" : `\`${plain}\``;
}

function counts(byName: Readonly<Partial<Record<string, number>>>): string {
  const entries = Object.entries(byName).filter(([, count]) => (count ?? 0) > 0);
  return entries.length === 0
    ? "–"
    : entries.map(([name, count]) => `${name} ×${count}`).join(", ");
}

function estimate(value: Estimate | undefined): string {
  return value === undefined ? "–" : `${fixed(value.value)} (${describeInterval(value)})`;
}

function fixed(value: number): string {
  return value.toFixed(3);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function dollars(value: number | undefined): string {
  return value === undefined ? "not known (no price given)" : `$${value.toFixed(4)}`;
}
