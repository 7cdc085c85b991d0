import path from "node:path";
import { isObject } from "../../values/is-object.ts";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { diskFiles, readText, type Files } from "../disk/files.ts";
import { storageError } from "../disk/storage-error.ts";

/**
 * Reads the specs of a run's side columns from `run.json`. Returns `undefined` if the run has none, or the folder has
 * no such file.
 *
 * @throws UsageError if the disk fails.
 */
export async function readColumnSpecs(
  dir: string,
  files: Files = diskFiles,
): Promise<ColumnSpecs | undefined> {
  const file = path.join(dir, "run.json");
  let text: string | undefined;
  try {
    text = await readText(files, file);
  } catch (error) {
    throw storageError("read", file, error);
  }
  const manifest = text === undefined ? undefined : parseJsonText(text);
  const { found } = isObject(manifest) ? manifest : {};
  const { columns } = isObject(found) ? found : {};
  return isObject(columns) ? columns : undefined;
}
