import path from "node:path";
import { type Files, type OpenFile, diskFiles, writeAll } from "./files.ts";
import { storageError } from "./storage-error.ts";

/**
 * Writes a file as a whole: whoever reads it, also after a crash of the machine, finds the old
 * contents or the new ones. A link is followed, so that what it leads to is replaced. Of several who
 * write it at once, the last to end has it to itself.
 *
 * @throws UsageError where the disk refuses; the old contents are still there then.
 */
export async function writeWhole(
  file: string,
  content: string | AsyncIterable<Uint8Array>,
  { files = diskFiles }: { files?: Files } = {},
): Promise<void> {
  let next: string | undefined;
  try {
    const target = await files.realPath(file);
    const created = await createNext(files, target);
    next = created.name;
    await fill(created.open, content);
    await files.rename(next, target);
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

/** Each writer has a file of its own: two that write at once must not write into one another's. */
async function createNext(
  files: Files,
  target: string,
): Promise<{ readonly name: string; readonly open: OpenFile }> {
  for (let number = 1; ; number++) {
    const name = nextName(number === 1 ? target : `${target}.${number}`);
    try {
      return { name, open: await files.open(name, "create") };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

async function fill(open: OpenFile, content: string | AsyncIterable<Uint8Array>): Promise<void> {
  try {
    await writeContent(open, content);
    await open.sync();
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
export async function writeWholeJson(
  file: string,
  value: object,
  options?: { files?: Files },
): Promise<void> {
  await writeWhole(file, `${JSON.stringify(value, null, 2)}\n`, options);
}
