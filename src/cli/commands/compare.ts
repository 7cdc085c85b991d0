import type { Command } from "commander";
import { compareRuns, type RunComparison, type TaskComparison } from "../../report/compare-runs.ts";
import { describeInterval } from "../../report/statistics/describe-interval.ts";
import { readRunResults } from "../../report/run-results.ts";
import { rowsText, terminalColumns } from "../rows-text.ts";
import { writeOut } from "../write-out.ts";

/** `turnwright compare`: compares two runs task by task. */
export function defineCompare(command: Command): void {
  command
    .description(
      "Says on which tasks run B is better or worse than run A, how large the " +
        "difference in mean reward is (Student's 95 % interval over tasks), and " +
        "whether chance explains it (exact sign test over tasks; with one attempt a " +
        "task that is McNemar's). Attempts without a score are left out and counted.",
    )
    .option("--json", "print the comparison as JSON")
    .action(async (a: string, b: string, flags: { readonly json?: boolean }) => {
      const comparison = compareRuns(await readRunResults(a), await readRunResults(b));
      await writeOut(
        flags.json === true ? `${JSON.stringify(comparison)}\n` : printComparison(comparison),
      );
    });
}

/** Formats a comparison for people. `columns` is the width of the terminal. */
export function printComparison(
  comparison: RunComparison,
  columns: number = terminalColumns(),
): string {
  const { averageReward, difference, winCount, lossCount, tieCount, pValue, unscored } = comparison;
  const { value, taskCount } = difference;
  const rows: [string, string][] = [
    ["A", `${comparison.a}: average reward ${averageReward.a.toFixed(3)}`],
    ["B", `${comparison.b}: average reward ${averageReward.b.toFixed(3)}`],
    [
      "B - A",
      `${signed(value)}  (95 %: ${describeInterval(difference, signed)}), over ${taskCount} tasks`,
    ],
    ["B is", `better on ${winCount}, worse on ${lossCount}, the same on ${tieCount}`],
    ["chance", `p = ${pValue.toPrecision(3)} (exact ${testNames[comparison.test]}, two-sided)`],
  ];
  const { onlyInA, onlyInB, branches } = comparison;
  if (onlyInA + onlyInB > 0) {
    rows.push(["left out", `tasks scored in A only: ${onlyInA}, in B only: ${onlyInB}`]);
  }
  if (unscored.a + unscored.b > 0) {
    rows.push(["no score", `attempts of A: ${unscored.a}, of B: ${unscored.b}`]);
  }
  if (branches !== undefined) {
    rows.push(["branches", `left out of A: ${branches.a}, of B: ${branches.b}`]);
  }
  return `\n${rowsText(rows, columns)}${printTasks(comparison.tasks, columns)}`;
}

const testNames = { mcnemar: "McNemar test", sign: "sign test" } as const;

function printTasks(tasks: readonly TaskComparison[], columns: number): string {
  const changed = (["better", "worse"] as const).flatMap((verdict) =>
    tasks
      .filter((task) => task.verdict === verdict)
      .map(
        ({ taskId, a, b }) => [verdict, `${taskId}: ${a.toFixed(2)} to ${b.toFixed(2)}`] as const,
      ),
  );
  return changed.length === 0 ? "" : `\n${rowsText(changed, columns)}`;
}

function signed(value: number): string {
  return `${value < 0 ? "" : "+"}${value.toFixed(3)}`;
}
