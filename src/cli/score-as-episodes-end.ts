import type { TeacherConfig } from "../composition/config/teacher-config.ts";
import {
  openConfiguredTeacher,
  type EpisodesScored,
  type EpisodeTeacher,
} from "../composition/open-episode-teacher.ts";
import { createRunRedactor } from "../composition/run-secrets.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import { ownCommand } from "./own-command.ts";
import { hideSecrets } from "./write-out.ts";
import { formatCount } from "../text/format-count.ts";

/**
 * Opens the teacher of a rollout, and hides its key in everything that is printed.
 *
 * @param note - Receives what people should know.
 * @throws as `openConfiguredTeacher()` does.
 */
export async function openRolloutTeacher(
  config: TeacherConfig,
  folder: RunFolder,
  { signal, note }: { readonly signal: AbortSignal; readonly note: (text: string) => void },
): Promise<EpisodeTeacher> {
  hideSecrets(createRunRedactor({ engine: config.engine }, process.env));
  return await openConfiguredTeacher(config, folder, { signal, note, command: ownCommand() });
}

/** Describes the rows that lack the teacher's columns. Returns `undefined` if none does. */
export function describeMissing(
  { name, leftOutCount, failure }: EpisodesScored,
  folder: Pick<RunFolder, "name">,
): string | undefined {
  const remedy = `turnwright score ${folder.name} scores the others later, with the same --teacher settings`;
  if (failure !== undefined) return `not all rows are scored by ${name}: ${failure}; ${remedy}`;
  return leftOutCount === 0
    ? undefined
    : `${formatCount(leftOutCount)} rows could not be scored by ${name}; turnwright score ${folder.name} names them`;
}
