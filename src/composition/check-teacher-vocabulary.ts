import { UsageError } from "../errors.ts";
import { findModelFolder } from "../hub/find-model-folder.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import { loadTokenCodec } from "../tokenizer/load-codec.ts";
import { fingerprintFiles, listFiles } from "./fingerprint.ts";

const file = "tokenizer.json";

/**
 * Compares a teacher's tokenizer with that of a run: ids must mean the same to both.
 *
 * @param model - The teacher's folder. Nothing is compared if it has no `tokenizer.json`.
 * @returns a note for people if the files differ, and the numbers of ids do not.
 * @throws UsageError if the teacher has another number of ids.
 */
export async function checkTeacherVocabulary(
  { identity = {}, found }: Pick<RunManifest, "identity" | "found">,
  model: string,
): Promise<string | undefined> {
  const dir = await findModelFolder(model);
  const { tokenizer } = identity;
  const { vocabularySize: ofRun } = found;
  if (typeof ofRun !== "number" || !(await listFiles(dir, "")).includes(file)) return undefined;
  if ((await fingerprintFiles(dir, [file])) === tokenizer) return undefined;
  const codec = await loadTokenCodec(dir);
  const { vocabularySize } = codec;
  await codec.close?.();
  if (vocabularySize !== ofRun) {
    throw new UsageError(
      `Cannot score with the teacher in ${model}: its tokenizer has ${vocabularySize} ids, and the run's has ${ofRun}; ` +
        "a teacher needs the policy's vocabulary",
    );
  }
  return tokenizer === undefined
    ? undefined
    : `the tokenizer.json in ${model} is not the run's file; both have ${vocabularySize} ids, so they are taken for the same`;
}
