/** The files of an evaluation, beside the run's own: `eval` and `report` write them, whoever writes the run. */
export const evaluationFiles = {
  evaluation: "evaluation.json",
  report: "report.md",
  tauBenchResults: "results.tau-bench.json",
} as const;
