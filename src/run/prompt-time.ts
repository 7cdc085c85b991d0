import type { EpisodeSetup } from "../episode/episode-setup.ts";

/**
 * A moment as the clock on the wall shows it, such as `2026-11-23T10:05:00.000`: without a zone, so that a
 * machine in another one prints the same.
 */
export function toPromptTime(moment: Date): string {
  const wallMs = moment.getTime() - moment.getTimezoneOffset() * 60_000;
  return new Date(wallMs).toISOString().slice(0, -1);
}

/** The moment that such a text names, for a template to print; nothing where it names none. */
export function readPromptTime(text: unknown): Date | undefined {
  if (typeof text !== "string" || !/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text)) return undefined;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? undefined : moment;
}

/** A setup for attempts of a run that began then. A date that was chosen for its renderer stays. */
export function withPromptTime<Setup extends Pick<EpisodeSetup, "renderer" | "promptTime">>(
  setup: Setup,
  text: string | undefined,
): Setup {
  const promptTime = readPromptTime(text);
  if (promptTime === undefined || setup.renderer.now !== undefined) return setup;
  return { ...setup, promptTime };
}
