import type { Command } from "commander";
import { readRunConfig, runSettings, type RunConfig } from "../../composition/config/run-config.ts";
import { requireIds } from "../../composition/config/chat-config.ts";
import { completeSettings } from "../../composition/config/setting.ts";
import { readTeacherConfig, teacherSettings } from "../../composition/config/teacher-config.ts";
import { handOutSettings, readHandOutConfig } from "../../queue/queue-settings.ts";
import { displaySettings, pickSettings } from "../display-settings.ts";
import type { PlayedRun, RunHelpers } from "../play-run.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { readRunDisplay, watchSettings, type RunDisplay } from "../watch-settings.ts";
import { writeOut } from "../write-out.ts";

/** The settings of `turnwright rollout`. Each is a flag and a key of its configuration file. */
export const rolloutSettings = [
  ...runSettings,
  ...handOutSettings,
  ...teacherSettings,
  ...displaySettings,
  ...watchSettings,
];

/** `turnwright rollout`: plays episodes against an inference engine and writes training samples. */
export function defineRollout(command: Command): void {
  command.description(
    "Plays many episodes at once and writes the exact sampled ids with their logprobs, loss mask " +
      "and reward. Settings come from flags, then from --config, then from the defaults. The same command " +
      "with the same --out continues a run that was stopped; no other flag is needed.",
  );
  addConfiguredSettings(command, rolloutSettings, groupSettings);
  command.action(async (flags: Record<string, unknown>) => {
    const given = await givenSettings(rolloutSettings, flags);
    const handOut = readHandOutConfig(pickSettings(handOutSettings, given));
    const teacher = readTeacherConfig(
      completeSettings(teacherSettings, pickSettings(teacherSettings, given)),
    );
    const config = readRunConfig(pickSettings(runSettings, given));
    requireIds(config.engine, { doing: "play a rollout" });
    await rollout(config, { ...readRunDisplay(given), namesNext: true }, { handOut, teacher });
  });
}

/** Plays the run that the configuration describes, and prints its summary. */
export async function rollout(
  config: RunConfig,
  display: RunDisplay,
  helpers?: RunHelpers,
): Promise<void> {
  const { playRun } = await import("../play-run.ts");
  const { nextStep, printRunSummary } = await import("../run-summary.ts");
  const finish = async ({ result, folder, teacher }: PlayedRun): Promise<void> => {
    const files = { samples: folder.samplesFile, slime: folder.slimeFile };
    const { end, progress, slime } = result;
    const more = { ...(slime && { slime }), ...(teacher && { teacher }) };
    const summary = { type: "summary", end, ...progress, ...more, files };
    const next = display.namesNext === true ? nextStep(end, folder) : "";
    const text = `${printRunSummary(result, folder, teacher)}${next}`;
    await writeOut(display.json ? `${JSON.stringify(summary)}\n` : text);
  };
  await playRun(config, display, finish, helpers);
}
