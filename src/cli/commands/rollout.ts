import type { Command } from "commander";
import { readRunConfig, runSettings, type RunConfig } from "../../composition/config/run-config.ts";
import {
  handOutSettings,
  readHandOutConfig,
  type HandOutConfig,
} from "../../queue/queue-settings.ts";
import { displaySettings, pickSettings } from "../display-settings.ts";
import type { PlayedRun } from "../play-run.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { readRunDisplay, watchSettings, type RunDisplay } from "../watch-settings.ts";
import { writeOut } from "../write-out.ts";

/** The settings of `turnwright rollout`. Each is a flag and a key of its configuration file. */
export const rolloutSettings = [
  ...runSettings,
  ...handOutSettings,
  ...displaySettings,
  ...watchSettings,
];

/** `turnwright rollout`: plays episodes against an inference engine and writes training samples. */
export function defineRollout(command: Command): void {
  command.description(
    "Plays many episodes at once and writes the exact sampled ids with their logprobs, loss mask " +
      "and reward. Settings come from flags, then from --config, then from the defaults.",
  );
  addConfiguredSettings(command, rolloutSettings, groupSettings);
  command.action(async (flags: Record<string, unknown>) => {
    const given = await givenSettings(rolloutSettings, flags);
    const handOut = readHandOutConfig(pickSettings(handOutSettings, given));
    await rollout(readRunConfig(pickSettings(runSettings, given)), readRunDisplay(given), handOut);
  });
}

/** Plays the run that the configuration describes, and prints its summary. */
export async function rollout(
  config: RunConfig,
  display: RunDisplay,
  handOut?: HandOutConfig,
): Promise<void> {
  const { playRun } = await import("../play-run.ts");
  const { printRunSummary } = await import("../run-summary.ts");
  const finish = async ({ result, folder }: PlayedRun): Promise<void> => {
    const files = { samples: folder.samplesFile, slime: folder.slimeFile };
    const { end, progress, slime } = result;
    const summary = { type: "summary", end, ...progress, ...(slime && { slime }), files };
    await writeOut(display.json ? `${JSON.stringify(summary)}\n` : printRunSummary(result, folder));
  };
  await playRun(config, display, finish, handOut);
}
