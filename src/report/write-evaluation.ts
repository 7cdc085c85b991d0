import path from "node:path";
import { writeWhole } from "../run/write-whole.ts";
import type { Evaluation } from "./evaluation.ts";
import { EvaluationTally, type EvaluationPlan } from "./evaluation-tally.ts";
import { renderMarkdownReport, type ReportSetup } from "./markdown-report.ts";
import type { StoredRun } from "./read-run.ts";
import { writeTauBenchResults, type TaskInfo } from "./tau-bench-results.ts";

/** The files of an evaluation, beside the run's own. */
export const evaluationFiles = {
  summary: "summary.json",
  report: "report.md",
  tauBenchResults: "results.tau-bench.json",
} as const;

/** What a report is made with. */
export interface EvaluationOptions {
  readonly plan: EvaluationPlan;
  /** What `summary.json` says besides the evaluation. */
  readonly summary: object;
  readonly taskInfo?: TaskInfo;
}

/**
 * Evaluates a run and writes `summary.json`, `report.md` and `results.tau-bench.json` into its folder.
 *
 * @throws UsageError where the run cannot be read.
 */
export async function writeEvaluation(
  run: StoredRun,
  { plan, summary, taskInfo }: EvaluationOptions,
): Promise<Evaluation> {
  const tally = new EvaluationTally(plan);
  for await (const row of run.rows()) tally.add(row);
  const evaluation = tally.evaluation();
  const file = (name: keyof typeof evaluationFiles) => path.join(run.dir, evaluationFiles[name]);
  await writeWhole(file("summary"), `${JSON.stringify({ ...summary, evaluation }, null, 2)}\n`);
  await writeWhole(file("report"), renderMarkdownReport(evaluation, describeSetup(run)));
  await writeTauBenchResults(file("tauBenchResults"), run.rows(), taskInfo);
  return evaluation;
}

function describeSetup({ manifest }: StoredRun): ReportSetup {
  const engine = manifest.found["engine"] as Readonly<Record<string, unknown>> | undefined;
  const rows: [string, unknown][] = [
    ["model", engine?.["model"]],
    ["policy version", engine?.["policyVersion"]],
    ["turnwright", manifest.turnwright],
    ...Object.entries(manifest.configuration),
  ];
  return rows
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
}
