import { createEngine } from "../composition/create-engine.ts";
import { checkTeacherVocabulary } from "../composition/check-teacher-vocabulary.ts";
import type { TeacherConfig } from "../composition/config/teacher-config.ts";
import { createRunRedactor } from "../composition/run-secrets.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import { RunFollower, type FollowResult } from "../teacher/follow-run.ts";
import { openTeacher } from "../teacher/open-teacher.ts";
import { formatCount } from "./progress-line.ts";
import { ownCommand } from "./own-command.ts";
import { hideSecrets } from "./write-out.ts";

/** The result of a teacher that scored a run's episodes as they ended. JSON-able. */
export interface EpisodesScored extends FollowResult {
  /** The teacher's name in the run's folder. */
  readonly name: string;
}

/** A teacher that scores a run's episodes as they end. */
export interface EpisodeTeacher extends AsyncDisposable {
  /** Called when an episode was written. */
  wake(): void;
  /** Scores the remaining rows. Call it when the run has ended. */
  finish(): Promise<EpisodesScored>;
}

/**
 * Opens the teacher of a rollout.
 *
 * @param note - Receives what people should know.
 * @throws UsageError if the teacher cannot score the run.
 * @throws RolloutError `engine/unreachable` if it does not answer.
 */
export async function openEpisodeTeacher(
  config: TeacherConfig,
  folder: RunFolder,
  { signal, note }: { readonly signal: AbortSignal; readonly note: (text: string) => void },
): Promise<EpisodeTeacher> {
  hideSecrets(createRunRedactor({ engine: config.engine }, process.env));
  const { modelDir, topCount, name, concurrency } = config;
  if (modelDir !== undefined) {
    const text = await checkTeacherVocabulary(folder.manifest, modelDir);
    if (text !== undefined) note(text);
  }
  const engine = await createEngine(config.engine, process.env);
  try {
    const choice = { engine, topCount, name };
    const opened = await openTeacher(folder.dir, choice, { signal, command: ownCommand() });
    const { writer, terms, description } = opened;
    const { contextLength } = description;
    const follower = new RunFollower(folder.dir, {
      writer,
      terms,
      concurrency,
      ...(contextLength !== undefined && { contextLength }),
      signal,
    });
    // Rows of earlier starts may lack the teacher's columns.
    follower.wake();
    return {
      wake: () => follower.wake(),
      finish: async () => ({ name: writer.record.name, ...(await follower.finish()) }),
      async [Symbol.asyncDispose]() {
        await opened[Symbol.asyncDispose]();
        await engine.close();
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
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
