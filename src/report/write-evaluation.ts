import path from "node:path";
import { evaluationFiles } from "../run/folder/evaluation-files.ts";
import { writeAtomically, writeJsonAtomically } from "../run/disk/write-atomically.ts";
import type { Evaluation } from "./evaluation.ts";
import { evaluateRun } from "./evaluate-run.ts";
import type { EvaluationPlan } from "./evaluation-tally.ts";
import { renderMarkdownReport, type ReportSetup } from "./markdown-report.ts";
import { numberTrials, trialEpisodes } from "./number-trials.ts";
import type { StoredRun } from "./read-run.ts";
import { writeTauBenchResults, type TaskInfo } from "./tau-bench-results.ts";

/** Options of `writeEvaluation()`. */
export interface EvaluationOptions {
  readonly plan: EvaluationPlan;
  readonly taskInfo?: TaskInfo;
}

/**
 * Evaluates a run and writes `evaluation.json`, `report.md` and `results.tau-bench.json` into its
 * folder. Takes no lock and writes none of the run's own files, so the run may continue at the same
 * time.
 * @throws UsageError if the run cannot be read.
 */
export async function writeEvaluation(
  run: StoredRun,
  { plan, taskInfo }: EvaluationOptions,
): Promise<Evaluation> {
  const trials = await numberTrials(run);
  const evaluation = await evaluateRun(run, { plan, trials });
  const file = (name: keyof typeof evaluationFiles) => path.join(run.dir, evaluationFiles[name]);
  await writeJsonAtomically(file("evaluation"), evaluation);
  await writeAtomically(file("report"), renderMarkdownReport(evaluation, describeSetup(run)));
  await writeTauBenchResults(file("tauBenchResults"), trialEpisodes(run, trials), taskInfo);
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
