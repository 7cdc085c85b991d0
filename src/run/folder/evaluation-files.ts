import { parseJsonText } from "../../json/parse-json.ts";
import { isRow } from "../../trajectory/violation.ts";

/** The files of an evaluation, beside the run's own: `eval` and `report` write them, whoever writes the run. */
export const evaluationFiles = {
  evaluation: "evaluation.json",
  report: "report.md",
  tauBenchResults: "results.tau-bench.json",
} as const;

/** Whether this is the text of an `evaluation.json` of ours. */
export function isEvaluation(text: string | undefined): boolean {
  const value = text === undefined ? undefined : parseJsonText(text);
  return isRow(value) && value["format"] === 1 && isRow(value["episodes"]);
}
