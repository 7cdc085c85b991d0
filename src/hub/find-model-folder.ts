import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors.ts";
import type { FetchModelOptions } from "./fetch-model.ts";
import { readModelName } from "./model-name.ts";
import { findMissing, snapshotAt } from "./snapshot.ts";

/**
 * Returns the folder of a model.
 *
 * The model is a path or `hf:OWNER/NAME[@REVISION]`. The latter downloads tokenizer and template
 * files that the hub's cache lacks. A model's folder in that cache is accepted as well as one of
 * its snapshots. Any other path is returned unchanged.
 *
 * @throws UsageError for a name that is not a path and lacks `hf:`, for a snapshot that lacks a
 *   file, and as `fetchModel()` does.
 */
export async function findModelFolder(model: string, options?: FetchModelOptions): Promise<string> {
  if (model.startsWith("hf:")) return await fetchOnce(model, options);
  const found = await stat(model).catch(() => undefined);
  if (found?.isDirectory() === true) {
    const dir = (await findSnapshot(model)) ?? model;
    await assertComplete(dir);
    return dir;
  }
  if (found === undefined && /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*(@[\w./-]+)?$/.test(model)) {
    throw new UsageError(
      `Cannot find the model ${model}: there is no such folder; for the Hugging Face hub write hf:${model}`,
    );
  }
  return model;
}

/**
 * The folders of downloaded models. A model stays the same during the process, even if `main`
 * moves.
 */
const fetched = new Map<string, Promise<string>>();

async function fetchOnce(model: string, options: FetchModelOptions | undefined): Promise<string> {
  if (options !== undefined) return await fetchModel(model, options);
  const known = fetched.get(model) ?? fetchModel(model);
  fetched.set(model, known);
  try {
    const dir = await known;
    const snapshot = snapshotAt(dir);
    if (snapshot === undefined || (await findMissing(snapshot)) === undefined) return dir;
    // Another process may have removed a file in the meantime.
    return await fetchModel(`${model.replace(/@.*$/, "")}@${snapshot.commit}`);
  } catch (error) {
    fetched.delete(model);
    throw error;
  }
}

/** Downloads a model. The module is imported only here, because most models are local folders. */
async function fetchModel(model: string, options?: FetchModelOptions): Promise<string> {
  const name = readModelName(model);
  const fetching = await import("./fetch-model.ts");
  return await fetching.fetchModel(name, options);
}

/**
 * Throws if a snapshot of the hub's cache is incomplete, for example after a broken download.
 * Otherwise prompts might lack their BOS token.
 */
async function assertComplete(dir: string): Promise<void> {
  const snapshot = snapshotAt(dir);
  const missing = snapshot && (await findMissing(snapshot));
  if (missing === undefined) return;
  throw new UsageError(
    `Cannot use the model in ${dir}: this part of the Hugging Face hub's cache lacks ${missing}; ` +
      "expected a complete snapshot, which hf:OWNER/NAME downloads",
  );
}

/** Returns the snapshot of `main` in a model's folder of the hub's cache. */
async function findSnapshot(dir: string): Promise<string | undefined> {
  if (!path.basename(path.resolve(dir)).startsWith("models--")) return undefined;
  const commit = await readFile(path.join(dir, "refs/main"), "utf8").catch(() => undefined);
  return commit === undefined ? undefined : path.join(dir, "snapshots", commit.trim());
}
