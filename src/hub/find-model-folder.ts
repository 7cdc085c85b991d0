import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors.ts";
import type { FetchModelOptions } from "./fetch-model.ts";
import { readModelName } from "./model-name.ts";
import { findMissing, snapshotAt } from "./snapshot.ts";

/**
 * The folder of a model that is named by its path, or as `hf:OWNER/NAME[@REVISION]`, whose tokenizer and
 * template files are then fetched, unless the hub's cache has them. A model's folder in that cache
 * does as well as one of its snapshots. Any other path is given back as it is.
 *
 * @throws UsageError for a name that is no path and lacks `hf:`, for a snapshot of the cache that lacks a file, and as
 *   `fetchModel()` does.
 */
export async function findModelFolder(model: string, options?: FetchModelOptions): Promise<string> {
  if (model.startsWith("hf:")) return await fetchOnce(model, options);
  const found = await stat(model).catch(() => undefined);
  if (found?.isDirectory() === true) {
    const dir = (await findSnapshot(model)) ?? model;
    await assertWhole(dir);
    return dir;
  }
  if (found === undefined && /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*(@[\w./-]+)?$/.test(model)) {
    throw new UsageError(
      `Cannot find the model ${model}: there is no such folder; for the Hugging Face hub write hf:${model}`,
    );
  }
  return model;
}

/** What was fetched stays the same model while the process lasts, whatever `main` is by then. */
const fetched = new Map<string, Promise<string>>();

async function fetchOnce(model: string, options: FetchModelOptions | undefined): Promise<string> {
  if (options !== undefined) return await fetchModel(model, options);
  const known = fetched.get(model) ?? fetchModel(model);
  fetched.set(model, known);
  try {
    const dir = await known;
    const snapshot = snapshotAt(dir);
    if (snapshot === undefined || (await findMissing(snapshot)) === undefined) return dir;
    // Somebody has removed a file since.
    return await fetchModel(`${model.replace(/@.*$/, "")}@${snapshot.commit}`);
  } catch (error) {
    fetched.delete(model);
    throw error;
  }
}

/** What fetches is loaded here: most models lie in a folder. */
async function fetchModel(model: string, options?: FetchModelOptions): Promise<string> {
  const name = readModelName(model);
  const fetching = await import("./fetch-model.ts");
  return await fetching.fetchModel(name, options);
}

/** A prompt must not lack its BOS token because a file is missing: a snapshot may be the rest of a broken download. */
async function assertWhole(dir: string): Promise<void> {
  const snapshot = snapshotAt(dir);
  const missing = snapshot && (await findMissing(snapshot));
  if (missing === undefined) return;
  throw new UsageError(
    `Cannot use the model in ${dir}: this part of the Hugging Face hub's cache lacks ${missing}; ` +
      "expected a whole snapshot, which hf:OWNER/NAME fetches",
  );
}

/** The snapshot that `main` is at, of a model's folder in the hub's cache. */
async function findSnapshot(dir: string): Promise<string | undefined> {
  if (!path.basename(path.resolve(dir)).startsWith("models--")) return undefined;
  const commit = await readFile(path.join(dir, "refs/main"), "utf8").catch(() => undefined);
  return commit === undefined ? undefined : path.join(dir, "snapshots", commit.trim());
}
