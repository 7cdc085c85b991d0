import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { replaceText } from "./replace-file.ts";

/** One commit of a model in the hub's cache. */
export interface Snapshot {
  /** The model's folder, `models--OWNER--NAME`. */
  readonly modelDir: string;
  readonly commit: string;
}

/** What a record says of each file that the hub listed for the commit. */
const recordSchema = z.object({
  files: z.array(z.object({ name: z.string(), bytes: z.number() })),
});

export function folderOf({ modelDir, commit }: Snapshot): string {
  return path.join(modelDir, "snapshots", commit);
}

/** The commit that a revision is at, so far as the cache knows. */
export async function readCommit(modelDir: string, revision: string): Promise<string> {
  const ref = await readFile(path.join(modelDir, "refs", revision), "utf8").catch(() => revision);
  return ref.trim();
}

/** The snapshot that a path leads to; `undefined` for a folder that is none of the hub's cache. */
export function snapshotAt(dir: string): Snapshot | undefined {
  const snapshots = path.dirname(path.resolve(dir));
  const modelDir = path.dirname(snapshots);
  const isOne =
    path.basename(snapshots) === "snapshots" && path.basename(modelDir).startsWith("models--");
  return isOne ? { modelDir, commit: path.basename(path.resolve(dir)) } : undefined;
}

/** Where it stands which files a snapshot must have. Beside the folders that the hub's library knows. */
function recordFile({ modelDir, commit }: Snapshot): string {
  return path.join(modelDir, ".turnwright", `${commit}.json`);
}

/** Writes down that a snapshot is whole. */
export async function recordSnapshot(snapshot: Snapshot, names: readonly string[]): Promise<void> {
  const dir = folderOf(snapshot);
  const files = await Promise.all(
    names.map(async (name) => ({ name, bytes: (await stat(path.join(dir, name))).size })),
  );
  await replaceText(recordFile(snapshot), JSON.stringify({ files }));
}

/**
 * Finds out what a snapshot lacks. Where a record says which files it must have, each of these is held to its size.
 * Others write no record: then `tokenizer.json` and `tokenizer_config.json` must be there, or the mark that the hub's
 * library leaves for a file that the model does not have. Without the second one, prompts would lack their BOS token.
 *
 * @returns the name of a file; `undefined` where nothing is known to be missing.
 */
export async function findMissing(snapshot: Snapshot): Promise<string | undefined> {
  const record = await readRecord(snapshot);
  if (record === undefined) return await findMissingUnrecorded(snapshot);
  for (const { name, bytes } of record.files) {
    if ((await sizeOf(path.join(folderOf(snapshot), name))) !== bytes) return name;
  }
  return undefined;
}

/** Tells whether a record says that all files are there, which is as sure as asking the hub. */
export async function isRecordedWhole(snapshot: Snapshot): Promise<boolean> {
  return (await readRecord(snapshot)) !== undefined && (await findMissing(snapshot)) === undefined;
}

async function findMissingUnrecorded(snapshot: Snapshot): Promise<string | undefined> {
  const dir = folderOf(snapshot);
  if ((await sizeOf(path.join(dir, "tokenizer.json"))) === undefined) return "tokenizer.json";
  const name = "tokenizer_config.json";
  const mark = path.join(snapshot.modelDir, ".no_exist", snapshot.commit, name);
  const isKnown = ((await sizeOf(path.join(dir, name))) ?? (await sizeOf(mark))) !== undefined;
  return isKnown ? undefined : name;
}

async function readRecord(snapshot: Snapshot) {
  try {
    return recordSchema.parse(JSON.parse(await readFile(recordFile(snapshot), "utf8")));
  } catch {
    // None, or one that is of no use: the hub is asked again.
    return undefined;
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  return await stat(file).then(
    ({ size }) => size,
    () => undefined,
  );
}
