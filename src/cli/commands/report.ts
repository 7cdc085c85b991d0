import type { Command } from "commander";
import { openStoredRun, type StoredRun } from "../../report/read-run.ts";
import { writeEvaluation, type EvaluationOptions } from "../../report/write-evaluation.ts";
import { planRun } from "../../run/schedule/plan-run.ts";
import { loadEnvironment } from "../../composition/environment/environments.ts";
import { toRunScope } from "../../composition/run-scope.ts";
import {
  readEnvironmentConfig,
  readScopeConfig,
  scopeSettings,
} from "../../composition/config/scope-config.ts";
import { completeSettings } from "../../composition/config/setting.ts";
import { storedSettings } from "../../composition/config/stored-settings.ts";
import { readReportTerms, reportSettings, type ReportTerms } from "../eval-settings.ts";
import { planEvaluation } from "../evaluation-plan.ts";
import { printEvaluation } from "../evaluation-text.ts";
import { addSettings, givenSettings } from "../option.ts";
import { isOpenRun, planOpenRun } from "../../report/open-run-plan.ts";
import { tauTaskInfo } from "../tau-task-info.ts";
import { noteDamaged } from "../note-damaged.ts";
import { writeOut } from "../write-out.ts";

interface ReportFlags extends Readonly<Record<string, unknown>> {
  readonly data?: string;
  readonly json?: boolean;
}

/** `turnwright report`: evaluates an existing run. */
export function defineReport(command: Command): void {
  command
    .description("Writes evaluation.json, report.md and results.tau-bench.json again.")
    .option("--data <dir>", "a τ-bench bundle folder (default: the run's)");
  addSettings(command, reportSettings);
  command.option("--json", "print the evaluation as JSON").action(report);
}

async function report(dir: string, { data, json, ...flags }: ReportFlags): Promise<void> {
  const run = await openStoredRun(dir, { onDamaged: noteDamaged });
  const terms = readReportTerms(await givenSettings(reportSettings, flags));
  const evaluation = await writeEvaluation(run, await planReport(run, { data, terms }));
  await writeOut(
    json === true ? `${JSON.stringify(evaluation)}\n` : printEvaluation(evaluation, dir),
  );
}

/** Returns the planned episodes of a run, and the facts about tasks that its results need. */
async function planReport(
  run: StoredRun,
  { data, terms }: { readonly data: string | undefined; readonly terms: ReportTerms },
): Promise<EvaluationOptions> {
  if (isOpenRun(run)) {
    return { plan: { ...(await planOpenRun(run)), ...terms }, taskInfo: () => new Map() };
  }
  const stored = storedSettings(run.manifest, scopeSettings);
  const values = completeSettings(scopeSettings, data === undefined ? stored : { ...stored, data });
  const environment = await loadEnvironment(readEnvironmentConfig(values));
  const scope = readScopeConfig(values);
  const plan = planRun(environment, toRunScope(scope, environment));
  const isBranching = scope.branchAt !== undefined;
  return {
    plan: { ...(await planEvaluation(environment.name, plan, terms)), isBranching },
    taskInfo: tauTaskInfo(environment),
  };
}
