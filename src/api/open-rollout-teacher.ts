import { completeSettings } from "../composition/config/setting.ts";
import { readTeacherConfig, teacherSettings } from "../composition/config/teacher-config.ts";
import type { Engine } from "../engine/engine.ts";
import { UsageError } from "../errors.ts";
import type { EpisodeTeacher } from "../composition/open-episode-teacher.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import { teacherSettingsOf, type RolloutOptions } from "./rollout-options.ts";

/**
 * Opens the teacher of a rollout. Returns `undefined` if the options name none.
 *
 * @param folder - The run's folder.
 * @throws UsageError if the run has no folder, or if the teacher cannot score it.
 * @throws RolloutError `engine/unreachable` if the teacher does not answer.
 */
export async function openRolloutTeacher(
  options: RolloutOptions,
  folder: RunFolder | undefined,
): Promise<EpisodeTeacher | undefined> {
  const { teacher, signal } = options;
  const values = completeSettings(teacherSettings, teacherSettingsOf(options));
  const config = isEngine(teacher) ? undefined : readTeacherConfig(values);
  if (config === undefined && !isEngine(teacher)) return undefined;
  if (folder === undefined) {
    throw new UsageError("Missing out: a teacher's columns lie in the run's folder");
  }
  const { openConfiguredTeacher, openEpisodeTeacher } =
    await import("../composition/open-episode-teacher.ts");
  if (config !== undefined) {
    const note = (text: string): void => process.emitWarning(text);
    return await openConfiguredTeacher(config, folder, { signal, note });
  }
  const {
    "teacher-name": name,
    "teacher-top": topCount = 0,
    "teacher-concurrency": concurrency = 32,
  } = values;
  const choice = { engine: teacher as Engine, topCount, name, concurrency };
  return await openEpisodeTeacher(choice, folder.dir, { signal });
}

function isEngine(teacher: RolloutOptions["teacher"]): teacher is Engine {
  return typeof teacher === "object" && !Array.isArray(teacher);
}
