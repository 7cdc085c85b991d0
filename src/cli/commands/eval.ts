import type { Command } from "commander";
import { readRunConfig, type RunConfig } from "../../composition/config/run-config.ts";
import { requireIds, workersNeedIds } from "../../composition/config/chat-config.ts";
import type { GivenSettings } from "../../composition/config/setting.ts";
import { evalSettings, readReportTerms, toEvalSettings, toRunSettings } from "../eval-settings.ts";
import type { PlayedRun } from "../play-run.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { handOutSettings, readHandOutConfig } from "../../queue/queue-settings.ts";
import { pickSettings } from "../display-settings.ts";
import { readRunDisplay } from "../watch-settings.ts";
import { writeError, writeOut } from "../write-out.ts";

/** `turnwright eval`: measures a policy, with confidence intervals and reasons for failures. */
export function defineEval(command: Command): void {
  command.description(
    "Plays each task several times, as `rollout` does, and writes evaluation.json, " +
      "report.md and results.tau-bench.json (τ-bench's own format) beside the run's " +
      "files. Attempts without a score are reported and left out of the figures; " +
      "τ-bench's own figures are given as well.",
  );
  addConfiguredSettings(command, evalSettings, groupSettings);
  command.action(async (flags: Record<string, unknown>) => {
    await evaluate(await givenSettings(evalSettings, flags));
  });
}

/**
 * Plays the unfinished part of an evaluation, and reports on all of it. With `resume`, missing
 * settings come from the run in `out`.
 *
 * @throws UsageError as `readRunConfig()` and `playRun()` do.
 */
export async function evaluate(given: GivenSettings): Promise<void> {
  const settings = given["resume"] === true ? await withStored(given) : given;
  const config = readRunConfig(toRunSettings(settings));
  await playAndReport(config, settings);
}

async function withStored(given: GivenSettings): Promise<GivenSettings> {
  const { requireSetting } = await import("../../composition/config/setting.ts");
  const { openStoredRun } = await import("../../report/read-run.ts");
  const { storedSettings } = await import("../../composition/config/stored-settings.ts");
  const out = requireSetting(given["out"], "out", "the folder of the run to resume");
  const { manifest } = await openStoredRun(String(out));
  return { ...toEvalSettings(storedSettings(manifest)), ...given };
}

async function playAndReport(config: RunConfig, settings: GivenSettings): Promise<void> {
  const { openStoredRun } = await import("../../report/read-run.ts");
  const { writeEvaluation } = await import("../../report/write-evaluation.ts");
  const { evaluationFiles } = await import("../../run/folder/evaluation-files.ts");
  const { planEvaluation } = await import("../evaluation-plan.ts");
  const { printEvaluation } = await import("../evaluation-text.ts");
  const { playRun } = await import("../play-run.ts");
  const { describeTroubles } = await import("../run-summary.ts");
  const { tauTaskInfo } = await import("../tau-task-info.ts");
  const display = readRunDisplay(settings);
  const terms = readReportTerms(settings);
  const finish = async ({ result, folder, environment, plan }: PlayedRun): Promise<void> => {
    const { dir, name } = folder;
    const { end } = result;
    const evaluation = await writeEvaluation(await openStoredRun(dir), {
      plan: await planEvaluation(environment.name, plan, terms),
      taskInfo: tauTaskInfo(environment),
    });
    const files = { summary: "summary.json", ...evaluationFiles };
    const event = { type: "evaluation", end, files, ...evaluation };
    await writeOut(display.json ? `${JSON.stringify(event)}\n` : printEvaluation(evaluation, name));
    const troubles = describeTroubles(result.progress);
    if (troubles !== undefined) writeError(`note: ${troubles}\n`);
    if (end !== "finished") writeError(`${unfinished[end]}\n`);
  };
  const handOut = readHandOutConfig(pickSettings(handOutSettings, settings));
  if (handOut !== undefined) requireIds(config.engine, workersNeedIds);
  const { successThreshold } = terms;
  await playRun(config, display, finish, { handOut, successThreshold });
}

const unfinished = {
  interrupted:
    "The evaluation was interrupted: the figures cover the finished episodes. Continue with --resume.",
  "too-many-failures":
    "The evaluation stopped: too many episodes failed in a row. Fix the cause and continue with --resume.",
} as const;
