import type { Engine } from "../engine/engine.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import { RunFollower, type FollowResult } from "../teacher/follow-run.ts";
import { openTeacher, type TeacherChoice } from "../teacher/open-teacher.ts";
import { checkTeacherVocabulary } from "./check-teacher-vocabulary.ts";
import type { TeacherConfig } from "./config/teacher-config.ts";
import { createEngine } from "./create-engine.ts";

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

interface TeacherSurroundings {
  readonly signal?: AbortSignal | undefined;
  /** The command that holds the lock of the teacher's files, for messages. */
  readonly command?: string;
}

/**
 * Opens the teacher of a rollout from its configuration.
 *
 * @param note - Receives what people should know.
 * @throws UsageError if the teacher cannot score the run.
 * @throws RolloutError `engine/unreachable` if it does not answer.
 */
export async function openConfiguredTeacher(
  config: TeacherConfig,
  folder: RunFolder,
  { note, ...more }: TeacherSurroundings & { readonly note: (text: string) => void },
): Promise<EpisodeTeacher> {
  const { modelDir, topCount, name, concurrency } = config;
  if (modelDir !== undefined) {
    const text = await checkTeacherVocabulary(folder.manifest, modelDir);
    if (text !== undefined) note(text);
  }
  const engine = await createEngine(config.engine, process.env);
  try {
    const choice = { engine, topCount, name, concurrency };
    const teacher = await openEpisodeTeacher(choice, folder.dir, more);
    return {
      ...teacher,
      async [Symbol.asyncDispose]() {
        await teacher[Symbol.asyncDispose]();
        await engine.close();
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/**
 * Opens a teacher whose engine exists. The engine stays open.
 *
 * @param concurrency - Number of rows that are scored at the same time.
 * @throws as `openConfiguredTeacher()` does.
 */
export async function openEpisodeTeacher(
  { concurrency, ...choice }: TeacherChoice & { readonly engine: Engine; concurrency: number },
  dir: string,
  { signal, command }: TeacherSurroundings,
): Promise<EpisodeTeacher> {
  const opened = await openTeacher(dir, choice, {
    ...(signal && { signal }),
    ...(command !== undefined && { command }),
  });
  const { writer, terms, description } = opened;
  const { contextLength } = description;
  const follower = new RunFollower(dir, {
    writer,
    terms,
    concurrency,
    ...(contextLength !== undefined && { contextLength }),
    ...(signal && { signal }),
  });
  // Rows of earlier starts may lack the teacher's columns.
  follower.wake();
  return {
    wake: () => follower.wake(),
    finish: async () => ({ name: writer.record.name, ...(await follower.finish()) }),
    [Symbol.asyncDispose]: async () => await opened[Symbol.asyncDispose](),
  };
}
