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

/** The record of the files that the hub listed for a commit. */
const recordSchema = z.object({
  files: z.array(z.object({ name: z.string(), bytes: z.number() })),
});

/** Returns a snapshot's folder. */
export function folderOf({ modelDir, commit }: Snapshot): string {
  return path.join(modelDir, "snapshots", commit);
}

/** Returns the commit of a revision from the cache. `undefined` if the cache does not know it. */
export async function readCommit(modelDir: string, revision: string): Promise<string> {
  const ref = await readFile(path.join(modelDir, "refs", revision), "utf8").catch(() => revision);
  return ref.trim();
}

/** Returns the snapshot at a path, or `undefined` for a folder outside the hub's cache. */
export function snapshotAt(dir: string): Snapshot | undefined {
  const snapshots = path.dirname(path.resolve(dir));
  const modelDir = path.dirname(snapshots);
  const isOne =
    path.basename(snapshots) === "snapshots" && path.basename(modelDir).startsWith("models--");
  return isOne ? { modelDir, commit: path.basename(path.resolve(dir)) } : undefined;
}

/** Returns the path of a snapshot's record, in a folder that the hub's library does not use. */
function recordFile({ modelDir, commit }: Snapshot): string {
  return path.join(modelDir, ".turnwright", `${commit}.json`);
}

/** Writes the record of a complete snapshot. */
export async function recordSnapshot(snapshot: Snapshot, names: readonly string[]): Promise<void> {
  const dir = folderOf(snapshot);
  const files = await Promise.all(
    names.map(async (name) => ({ name, bytes: (await stat(path.join(dir, name))).size })),
  );
  await replaceText(recordFile(snapshot), JSON.stringify({ files }));
}

/**
 * Finds a file that a snapshot lacks.
 *
 * A record lists the files that must exist, and their sizes. Without a record, because another
 * program downloaded the snapshot, it must have `tokenizer.json` and `tokenizer_config.json`, or
 * the hub library's mark for a file that the model does not have. Without `tokenizer_config.json`,
 * prompts would lack their BOS token.
 *
 * @returns the name of a missing file, or `undefined`.
 */
export async function findMissing(snapshot: Snapshot): Promise<string | undefined> {
  const record = await readRecord(snapshot);
  if (record === undefined) return await findMissingUnrecorded(snapshot);
  for (const { name, bytes } of record.files) {
    if ((await sizeOf(path.join(folderOf(snapshot), name))) !== bytes) return name;
  }
  return undefined;
}

/** True if the snapshot has a record and all its files. That is as certain as the hub's answer. */
export async function isRecordedComplete(snapshot: Snapshot): Promise<boolean> {
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
    // There is no usable record, so the hub is contacted again.
    return undefined;
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  return await stat(file).then(
    ({ size }) => size,
    () => undefined,
  );
}
