import { isObject } from "../../values/is-object.ts";
import { parseJsonText } from "../../json/parse-json.ts";

/** The files of an evaluation in a run's folder. `eval` and `report` write them. */
export const evaluationFiles = {
  evaluation: "evaluation.json",
  report: "report.md",
  tauBenchResults: "results.tau-bench.json",
} as const;

/** True if the text is an `evaluation.json` that this package wrote. */
export function isEvaluation(text: string | undefined): boolean {
  const value = text === undefined ? undefined : parseJsonText(text);
  return isObject(value) && value["format"] === 1 && isObject(value["episodes"]);
}
