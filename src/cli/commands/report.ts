import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { openStoredRun, type StoredRun } from "../../report/read-run.ts";
import { evaluationFiles, writeEvaluation } from "../../report/write-evaluation.ts";
import { planRun } from "../../run/plan-run.ts";
import { loadEnvironment } from "../../setup/environments.ts";
import { toRunScope } from "../../setup/run-scope.ts";
import { readEnvironmentConfig, readScopeConfig, scopeSettings } from "../../setup/scope-config.ts";
import { completeSettings } from "../../setup/setting.ts";
import { storedSettings } from "../../setup/stored-settings.ts";
import { priceSettings, readPrices } from "../eval-settings.ts";
import { planEvaluation } from "../evaluation-plan.ts";
import { printEvaluation } from "../evaluation-text.ts";
import { addSettings, givenSettings } from "../option.ts";
import { tauTaskInfo } from "../tau-task-info.ts";
import { noteDamaged } from "../note-damaged.ts";
import { writeOut } from "../write-out.ts";

interface ReportFlags extends Readonly<Record<string, unknown>> {
  readonly data?: string;
  readonly json?: boolean;
}

/** `turnwright report`: evaluates a run that was played already. */
export function defineReport(command: Command): void {
  command
    .description("Writes summary.json, report.md and results.tau-bench.json anew.")
    .option("--data <dir>", "a τ-bench bundle folder (default: the run's)");
  addSettings(command, priceSettings);
  command.option("--json", "print the evaluation as JSON").action(report);
}

async function report(dir: string, { data, json, ...flags }: ReportFlags): Promise<void> {
  const run = await openStoredRun(dir, { onDamaged: noteDamaged });
  const stored = storedSettings(run.manifest, scopeSettings);
  const values = completeSettings(scopeSettings, data === undefined ? stored : { ...stored, data });
  const { name, dataDir } = readEnvironmentConfig(values);
  const environment = await loadEnvironment(name, dataDir);
  const plan = planRun(environment, toRunScope(readScopeConfig(values), environment));
  const prices = readPrices(await givenSettings(priceSettings, flags));
  const evaluation = await writeEvaluation(run, {
    plan: await planEvaluation(environment.name, plan, prices),
    summary: await storedSummary(run),
    taskInfo: tauTaskInfo(environment),
  });
  await writeOut(
    json === true ? `${JSON.stringify(evaluation)}\n` : printEvaluation(evaluation, dir),
  );
}

/** What the run itself said of its end; nothing where it has not come to one. */
async function storedSummary({ dir }: StoredRun): Promise<object> {
  const text = await readFile(path.join(dir, evaluationFiles.summary), "utf8").catch(() => "{}");
  return JSON.parse(text) as object;
}
