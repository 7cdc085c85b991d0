import type { EpisodeSetup } from "../episode/episode-setup.ts";

/**
 * Formats a moment as local time without a zone, such as `2026-11-23T10:05:00.000`, so that a machine in another zone
 * prints the same.
 */
export function toPromptTime(moment: Date): string {
  const wallMs = moment.getTime() - moment.getTimezoneOffset() * 60_000;
  return new Date(wallMs).toISOString().slice(0, -1);
}

/** Parses the text of `RunManifest.promptTime`. Returns `undefined` if it is not a date. */
export function readPromptTime(text: unknown): Date | undefined {
  if (typeof text !== "string" || !/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text)) return undefined;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? undefined : moment;
}

/**
 * Sets the current time of a setup's prompts to the start of the run. A date that was chosen for the renderer stays.
 */
export function withPromptTime<Setup extends Pick<EpisodeSetup, "renderer" | "promptTime">>(
  setup: Setup,
  text: string | undefined,
): Setup {
  const promptTime = readPromptTime(text);
  if (promptTime === undefined || setup.renderer?.now !== undefined) return setup;
  return { ...setup, promptTime };
}
