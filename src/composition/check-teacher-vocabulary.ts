import { UsageError } from "../errors.ts";
import { findModelFolder } from "../hub/find-model-folder.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { loadTokenCodec } from "../tokenizer/load-codec.ts";
import { isObject } from "../values/is-object.ts";
import { fingerprintFiles, listFiles } from "./fingerprint.ts";

const file = "tokenizer.json";

/**
 * Compares a teacher's tokenizer with that of a run. Each id must be the same token in both.
 *
 * @param model - The teacher's folder. Nothing is compared if it has no `tokenizer.json`.
 * @returns a note for people if the tokens could not be compared: the files differ, both have the same number of ids,
 *   and the run's own file is missing.
 * @throws UsageError if the teacher has another number of ids, or another token for an id.
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
  const ours = await loadRunCodec(found);
  try {
    const { vocabularySize } = codec;
    if (vocabularySize !== ofRun) {
      throw otherVocabulary(
        model,
        `its tokenizer has ${vocabularySize} ids, and the run's has ${ofRun}`,
      );
    }
    if (ours === undefined) {
      return tokenizer === undefined
        ? undefined
        : `the tokenizer.json in ${model} is not the run's file; both have ${vocabularySize} ids, so they are taken for the same`;
    }
    for (let id = 0; id < ofRun; id++) {
      const [theirs, own] = [codec.tokenOf(id), ours.tokenOf(id)];
      if (theirs === own) continue;
      const tokens = `${JSON.stringify(theirs)}, and the run's has ${JSON.stringify(own)}`;
      throw otherVocabulary(model, `its tokenizer has for the id ${id} the token ${tokens}`);
    }
    return undefined;
  } finally {
    await codec.close?.();
    await ours?.close?.();
  }
}

function otherVocabulary(model: string, why: string): UsageError {
  return new UsageError(
    `Cannot score with the teacher in ${model}: ${why}; a teacher needs the policy's vocabulary`,
  );
}

/** Loads the run's tokenizer. Returns `undefined` if its folder is unknown or not here. */
async function loadRunCodec({ settings }: RunManifest["found"]): Promise<TokenCodec | undefined> {
  const { model } = isObject(settings) ? settings : {};
  if (typeof model !== "string") return undefined;
  try {
    return await loadTokenCodec(model);
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}
