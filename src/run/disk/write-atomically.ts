import path from "node:path";
import { UsageError } from "../../errors.ts";
import { type Files, type OpenFile, diskFiles, writeAll } from "./files.ts";
import { storageError } from "./storage-error.ts";

/**
 * Writes a file as a whole: whoever reads it, also after a crash of the machine, finds the old
 * contents or the new ones. A link is followed, so that what it leads to is replaced. Of several who
 * write it at once, the last to end has it to itself. What a writer left that was killed is taken away by one
 * that comes an hour later.
 *
 * @throws UsageError where the disk refuses; the old contents are still there then.
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
      if (await isStillThere(files, created)) return;
      // It is another's by now, or nobody's.
      next = undefined;
      throw abandoned(file);
    });
    await files.rename(created.name, target);
    // From here on a file of that name is another's.
    next = undefined;
    await files.syncFolder(path.dirname(target));
  } catch (error) {
    // The complaint is about what failed first.
    if (next !== undefined) await files.remove(next).catch(() => {});
    throw storageError("write", file, error);
  }
}

/** Where a file's next contents stand while they are written, unless another writer's stand there. */
export function nextName(file: string): string {
  return `${file}.next`;
}

/** A file with next contents that is being written. */
interface NextFile {
  readonly name: string;
  readonly open: OpenFile;
}

/** Each writer has a file of its own: two that write at once must not write into one another's. */
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

/** Whoever has written nothing for so long writes nothing any more, in milliseconds. */
const abandonedMs = 60 * 60_000;

/**
 * Removes what writers of the same file left who were killed: next contents that nobody has written to for an
 * hour, by the clock of whoever keeps the files.
 */
async function removeAbandoned(
  files: Files,
  target: string,
  { name: own, open }: NextFile,
): Promise<void> {
  const dir = path.dirname(target);
  const stem = `${path.basename(target)}.`;
  let nowMs: number | undefined;
  // Those that ended have left gaps between the numbers.
  for (const entry of await files.list(dir)) {
    if (!entry.startsWith(stem) || !/^(\d+\.)?next$/.test(entry.slice(stem.length))) continue;
    const name = path.join(dir, entry);
    const facts = name === own ? undefined : await files.facts(name);
    if (facts === undefined) continue;
    nowMs ??= (await open.facts()).writtenAtMs;
    if (nowMs - facts.writtenAtMs >= abandonedMs) await files.remove(name);
  }
}

/** Whether a writer that was slow, or stood still, has not been taken for one that was killed. */
async function isStillThere(files: Files, { name, open }: NextFile): Promise<boolean> {
  const [there, own] = [await files.facts(name), await open.facts()];
  return there?.identity === own.identity;
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

/** `writeWhole()` of a value as indented JSON. */
export async function writeJsonAtomically(
  file: string,
  value: object,
  options?: { files?: Files },
): Promise<void> {
  await writeAtomically(file, `${JSON.stringify(value, null, 2)}\n`, options);
}
