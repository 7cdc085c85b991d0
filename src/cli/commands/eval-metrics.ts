import type { Command } from "commander";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import {
  countIrregular,
  tauBenchMetrics,
  type TauBenchMetrics,
} from "../../report/tau-bench-metrics.ts";
import type { TrialResult } from "../../report/trial-result.ts";
import { LineError, answerJsonLines, dictListMember, toLinesInput } from "../json-lines.ts";
import { writeError, writeOut } from "../write-out.ts";

/** `turnwright eval-metrics`: computes τ-bench's figures from rewards. */
export function defineEvalMetrics(command: Command): void {
  command
    .description(
      'Reads lines {"id","results":[{"task","trial","reward"}]} and answers each ' +
        "with averageReward, passHatK and passAtK by k, as τ-bench computes them: a " +
        "trial that is missing counts as failed (standard error says so where there " +
        "are any).",
    )
    .option("--in <file>", "read from a file instead of standard input")
    .action(async (flags: { readonly in?: string }) => {
      process.exitCode = await answerJsonLines(toLinesInput(flags.in), writeOut, (line) => ({
        ...metricsOf(line),
      }));
    });
}

function metricsOf(line: PyDict): TauBenchMetrics {
  const results = dictListMember(line, "results").map((result, index) => readResult(result, index));
  if (results.length === 0) throw new LineError("no-results", '"results" must not be empty');
  const { missingCount, duplicateCount } = countIrregular(results);
  const notes = [
    ...(missingCount > 0 ? [`missing trials, counted as failed: ${missingCount}`] : []),
    ...(duplicateCount > 0 ? [`results beyond one a trial, counted again: ${duplicateCount}`] : []),
  ];
  if (notes.length > 0) writeError(`${nameOf(line)}: ${notes.join("; ")}\n`);
  return tauBenchMetrics(results);
}

function nameOf(line: PyDict): string {
  return `line ${stringifyPythonJson(line.get("id") ?? null)}`;
}

function readResult(result: PyDict, index: number): TrialResult {
  const place = `"results"[${index}]`;
  const task = result.get("task");
  if (typeof task !== "string" && typeof task !== "bigint") {
    throw new LineError("bad-line", `${place}.task must be a whole number or a text`);
  }
  return {
    task: stringifyPythonJson(task),
    trial: numberOf(result, "trial", place),
    reward: numberOf(result, "reward", place),
  };
}

function numberOf(result: PyDict, field: string, place: string): number {
  const value = result.get(field);
  if (typeof value === "bigint" || typeof value === "number") {
    const number = Number(value);
    if (Number.isFinite(number)) return number;
  }
  throw new LineError("bad-line", `${place}.${field} must be a finite number`);
}
