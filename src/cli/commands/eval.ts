import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import type { EvaluationPlan } from "../../report/evaluation-tally.ts";
import { openStoredRun, type StoredRun } from "../../report/read-run.ts";
import { evaluationFiles, writeEvaluation } from "../../report/write-evaluation.ts";
import type { PlannedEpisode } from "../../run/plan-run.ts";
import { loadEnvironment } from "../environments.ts";
import { evalSettings, toRolloutSettings, withStoredDefaults } from "../eval-settings.ts";
import { printEvaluation } from "../evaluation-text.ts";
import {
  addSettings,
  numberOf,
  requiredText,
  resolveSettings,
  textOf,
  type Settings,
} from "../option.ts";
import { buildPlan, playRun } from "../play-run.ts";
import { tauTaskInfo } from "../tau-task-info.ts";
import { writeOut } from "../write-out.ts";

/** `turnwright eval` and `report`: how good a policy is, with intervals and reasons. */
export function addEvalCommands(program: Command): void {
  const command = program
    .command("eval")
    .summary("measure a policy: pass^k, pass@k, reward, cost, what went wrong")
    .description(
      "Plays each task several times, as `rollout` does, and writes summary.json,\n" +
        "report.md and results.tau-bench.json (τ-bench's own format) beside the run's\n" +
        "files. Attempts without a score are reported and left out of the figures;\n" +
        "τ-bench's own figures are given as well.",
    )
    .option("--config <file>", "JSON file with the same names as the flags, without the dashes");
  addSettings(command, evalSettings);
  command.action(async (flags: Record<string, unknown>) => {
    await evaluate(await resolveEvalSettings(flags));
  });
  program
    .command("report")
    .summary("evaluate a run that was played already")
    .description("Writes summary.json, report.md and results.tau-bench.json anew.")
    .argument("<run>", "a run's folder")
    .option("--data <dir>", "a τ-bench bundle folder (default: the run's)")
    .option("--policy-input-price <usd>", "US dollars per million prompt tokens", parsePrice)
    .option("--policy-output-price <usd>", "US dollars per million sampled tokens", parsePrice)
    .option("--json", "print the evaluation as JSON")
    .action(reportRun);
}

async function resolveEvalSettings(flags: Record<string, unknown>): Promise<Settings> {
  const configFile = flags["config"] as string | undefined;
  const settings = await resolveSettings(evalSettings, flags, configFile);
  if (settings["resume"] !== true) return settings;
  const dir = requiredText(settings, "out", "the folder of the run to resume");
  const { manifest } = await openStoredRun(dir);
  const stored = manifest.found["settings"] as Settings;
  return await resolveSettings(withStoredDefaults(stored), flags, configFile);
}

/** Plays what is left of the evaluation that the settings describe, and reports on all of it. */
export async function evaluate(settings: Settings): Promise<void> {
  await playRun(toRolloutSettings(settings), async ({ result, folder, environment, plan }) => {
    const run = await openStoredRun(folder.dir);
    const evaluation = await writeEvaluation(run, {
      plan: evaluationPlan(environment.name, plan, settings),
      summary: { end: result.end, ...result.progress },
      taskInfo: tauTaskInfo(environment),
    });
    await writeOut(
      settings["json"] === true
        ? `${JSON.stringify({ type: "evaluation", end: result.end, files: evaluationFiles, ...evaluation })}\n`
        : printEvaluation(evaluation, folder.dir),
    );
    if (result.end !== "finished") process.stderr.write(`${unfinished[result.end]}\n`);
  });
}

const unfinished = {
  interrupted:
    "The evaluation was interrupted: the figures are of what is there. Go on with --resume.",
  "too-many-failures":
    "The evaluation stopped: too many episodes failed in a row. Mend the cause and go on with --resume.",
} as const;

interface ReportFlags {
  readonly data?: string;
  readonly policyInputPrice?: number;
  readonly policyOutputPrice?: number;
  readonly json?: boolean;
}

async function reportRun(dir: string, flags: ReportFlags): Promise<void> {
  const run = await openStoredRun(dir);
  const stored = run.manifest.found["settings"] as Settings;
  const settings: Settings = {
    ...stored,
    "policy-input-price": flags.policyInputPrice,
    "policy-output-price": flags.policyOutputPrice,
  };
  const data = flags.data ?? textOf(stored, "data");
  const environment = await loadEnvironment(requiredText(stored, "env", "the environment"), data);
  const evaluation = await writeEvaluation(run, {
    plan: evaluationPlan(environment.name, buildPlan(stored, environment), settings),
    summary: await storedSummary(run),
    taskInfo: tauTaskInfo(environment),
  });
  await writeOut(
    flags.json === true ? `${JSON.stringify(evaluation)}\n` : printEvaluation(evaluation, dir),
  );
}

/** What the run itself said of its end; nothing where it has not come to one. */
async function storedSummary({ dir }: StoredRun): Promise<object> {
  const text = await readFile(path.join(dir, evaluationFiles.summary), "utf8").catch(() => "{}");
  return JSON.parse(text) as object;
}

function evaluationPlan(
  environment: string,
  plan: readonly PlannedEpisode[],
  settings: Settings,
): EvaluationPlan {
  const tasks = new Map(
    plan.map(({ task }) => [task.id, { taskId: task.id, taskIndex: task.index }]),
  );
  const inputUsd = numberOf(settings, "policy-input-price");
  const outputUsd = numberOf(settings, "policy-output-price");
  return {
    environment,
    split: plan[0]?.task.split ?? "",
    tasks: [...tasks.values()],
    trialCount: tasks.size === 0 ? 0 : plan.length / tasks.size,
    ...(inputUsd === undefined && outputUsd === undefined
      ? {}
      : { prices: { inputUsd: inputUsd ?? 0, outputUsd: outputUsd ?? 0 } }),
  };
}

function parsePrice(text: string): number {
  const price = Number(text);
  if (text.trim() !== "" && price >= 0) return price;
  throw new UsageError(`Cannot use the price ${text}: expected US dollars per million tokens`);
}
