import path from "node:path";
import { UsageError } from "../../errors.ts";
import { type Files, type OpenFile, diskFiles, writeAll } from "./files.ts";
import { storageError } from "./storage-error.ts";

/**
 * Replaces a file's content in one step: a reader finds the old or the new content, even after a crash of the machine.
 * Follows symbolic links. If several processes write the file at the same time, the last one wins. Removes temporary
 * files that a killed process left more than an hour ago.
 *
 * @throws UsageError if the disk fails; the old content stays then.
 */
export async function writeAtomically(
  file: string,
  content: string | AsyncIterable<Uint8Array>,
  { files = diskFiles }: { files?: Files } = {},
): Promise<void> {
  let next: string | undefined;
  try {
    const target = await files.realPath(file);
    const created = await createNext(files, target);
    next = created.name;
    await removeAbandoned(files, target, created).catch(() => {});
    await fill(created.open, content, async () => {
      if (await stillExists(files, created)) return;
      // Another process has removed or replaced the temporary file.
      next = undefined;
      throw abandoned(file);
    });
    await files.rename(created.name, target);
    // The temporary file has become the target: it must not be removed.
    next = undefined;
    await files.syncFolder(path.dirname(target));
  } catch (error) {
    // The first error is the one to report.
    if (next !== undefined) await files.remove(next).catch(() => {});
    throw storageError("write", file, error);
  }
}

/** Returns the path of the temporary file, unless another writer uses it. */
export function nextName(file: string): string {
  return `${file}.next`;
}

/** A temporary file with the next content. */
interface NextFile {
  readonly name: string;
  readonly open: OpenFile;
}

/** Creates a temporary file. Each writer has its own one, so that two writers never write into the same file. */
async function createNext(files: Files, target: string): Promise<NextFile> {
  for (let number = 1; ; number++) {
    const name = numberedName(target, number);
    try {
      return { name, open: await files.open(name, "create") };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function numberedName(target: string, number: number): string {
  return nextName(number === 1 ? target : `${target}.${number}`);
}

/** The age in milliseconds after which a temporary file counts as abandoned. */
const abandonedMs = 60 * 60_000;

/**
 * Removes temporary files that killed processes left: nothing was written to them for an hour, by the file system's
 * clock.
 */
async function removeAbandoned(
  files: Files,
  target: string,
  { name: own, open }: NextFile,
): Promise<void> {
  const dir = path.dirname(target);
  const stem = `${path.basename(target)}.`;
  let nowMs: number | undefined;
  // The numbers may have gaps where writers have ended.
  for (const entry of await files.list(dir)) {
    if (!entry.startsWith(stem) || !/^(\d+\.)?next$/.test(entry.slice(stem.length))) continue;
    const name = path.join(dir, entry);
    const facts = name === own ? undefined : await files.facts(name);
    if (facts === undefined) continue;
    nowMs ??= (await open.facts()).writtenAtMs;
    if (nowMs - facts.writtenAtMs >= abandonedMs) await files.remove(name);
  }
}

/** True if the temporary file still exists. Another process may have removed it if this writer was very slow. */
async function stillExists(files: Files, { name, open }: NextFile): Promise<boolean> {
  const [current, own] = [await files.facts(name), await open.facts()];
  return current?.identity === own.identity;
}

function abandoned(file: string): UsageError {
  return new UsageError(
    `Cannot write ${file}: nothing was written for an hour, and another writer has taken what was written ` +
      "away; start the same command again",
  );
}

async function fill(
  open: OpenFile,
  content: string | AsyncIterable<Uint8Array>,
  beforeClose: () => Promise<void>,
): Promise<void> {
  try {
    await writeContent(open, content);
    await open.sync();
    await beforeClose();
  } finally {
    await open.close();
  }
}

async function writeContent(
  open: OpenFile,
  content: string | AsyncIterable<Uint8Array>,
): Promise<void> {
  if (typeof content === "string") {
    await writeAll(open, Buffer.from(content), 0);
    return;
  }
  let position = 0;
  for await (const bytes of content) {
    await writeAll(open, bytes, position);
    position += bytes.length;
  }
}

/** Writes a value as indented JSON (see `writeAtomically()`). */
export async function writeJsonAtomically(
  file: string,
  value: object,
  options?: { files?: Files },
): Promise<void> {
  await writeAtomically(file, `${JSON.stringify(value, null, 2)}\n`, options);
}
