import type { Command } from "commander";
import type { RunFolder } from "../../run/run-folder.ts";
import type { RunResult } from "../../run/run-rollouts.ts";
import { addSettings, resolveSettings, type Settings } from "../option.ts";
import { playRun } from "../play-run.ts";
import { rolloutSettings } from "../rollout-settings.ts";
import { printRunSummary } from "../run-summary.ts";
import { writeOut } from "../write-out.ts";

/** `turnwright rollout`: plays episodes against an inference engine and writes training samples. */
export function addRolloutCommand(program: Command): void {
  const command = program
    .command("rollout")
    .summary("play episodes against an inference engine, write training samples")
    .description(
      "Plays many episodes at once and writes the exact sampled ids with their logprobs, loss mask\n" +
        "and reward. Settings come from flags, then from --config, then from the defaults.",
    )
    .option("--config <file>", "JSON file with the same names as the flags, without the dashes");
  addSettings(command, rolloutSettings);
  command.action(async (flags: Record<string, unknown>) => {
    const configFile = flags["config"] as string | undefined;
    await rollout(await resolveSettings(rolloutSettings, flags, configFile));
  });
}

/** Plays the run that the settings describe, and prints its summary. */
export async function rollout(settings: Settings): Promise<void> {
  await playRun(settings, async ({ result, folder }) => await report(settings, result, folder));
}

async function report(settings: Settings, result: RunResult, folder: RunFolder): Promise<void> {
  if (settings["json"] === true) {
    const files = { samples: folder.samplesFile, slime: folder.slimeFile };
    const { end, progress, slime } = result;
    const summary = { type: "summary", end, ...progress, ...(slime && { slime }), files };
    await writeOut(`${JSON.stringify(summary)}\n`);
  } else {
    await writeOut(printRunSummary(result, folder));
  }
}
