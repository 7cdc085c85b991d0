import type { EngineDescription } from "../engine/engine.ts";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { requireScoring, type ScoringTerms } from "./score-row.ts";
import { nameOfModel, type TeacherRecord } from "./teacher-record.ts";
import { TeacherWriter } from "./teacher-writer.ts";

/** A teacher's engine, and the choices of its user. */
export interface TeacherChoice extends Omit<ScoringTerms, "policyVersion"> {
  /** The teacher's name in the run. Default: from its model's name. */
  readonly name?: string | undefined;
}

/** A teacher that is ready to score rows of a run. */
export interface OpenTeacher extends AsyncDisposable {
  readonly terms: ScoringTerms;
  readonly writer: TeacherWriter;
  readonly description: EngineDescription;
}

/**
 * Asks a teacher for its description, and opens its files in a run's folder.
 *
 * @throws UsageError if the engine cannot score, and as `TeacherWriter.open()` does.
 * @throws RolloutError `engine/unreachable` if the engine does not answer.
 */
export async function openTeacher(
  runDir: string,
  { engine, topCount, name }: TeacherChoice,
  {
    signal,
    files = diskFiles,
    command,
  }: { signal?: AbortSignal; files?: Files; command?: string } = {},
): Promise<OpenTeacher> {
  requireScoring(engine, topCount);
  const description = await engine.describe(signal && { signal });
  const { kind, model, engineVersion, policyVersion = "" } = description;
  const record: TeacherRecord = {
    format: 1,
    name: name ?? nameOfModel(model, kind),
    engine: kind,
    ...(model !== undefined && { model }),
    policyVersion,
    ...(engineVersion !== undefined && { engineVersion }),
    temperature: 1,
    topCount,
  };
  const writer = await TeacherWriter.open(runDir, record, {
    files,
    ...(signal && { signal }),
    ...(command !== undefined && { command }),
  });
  return {
    terms: { engine, topCount, policyVersion },
    writer,
    description,
    [Symbol.asyncDispose]: async () => await writer[Symbol.asyncDispose](),
  };
}
