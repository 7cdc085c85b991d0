import { randomUUID } from "node:crypto";
import { copyFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { makeFolder } from "../files/make-folder.ts";

/** Returns a name in the same folder that no other process uses. */
function temporaryName(file: string): string {
  return `${file}.${randomUUID()}.incomplete`;
}

/**
 * Creates or replaces a file atomically, also if several processes do so at the same time. Creates its folders.
 *
 * @param write - Writes the file under the given name.
 */
export async function replaceFile(
  file: string,
  write: (part: string) => Promise<void>,
): Promise<void> {
  await makeFolder(path.dirname(file));
  const part = temporaryName(file);
  try {
    await write(part);
    await rename(part, file);
  } finally {
    await rm(part, { force: true }).catch(() => undefined);
  }
}

/** Creates or replaces a text file atomically. */
export async function replaceText(file: string, text: string): Promise<void> {
  await replaceFile(file, async (part) => await writeFile(part, text));
}

/**
 * Replaces a file by a link to a blob, as the hub's own library does, or by a copy if links are not
 * supported.
 */
export async function replaceLink(file: string, blob: string): Promise<void> {
  await replaceFile(file, async (part) => {
    try {
      await symlink(path.relative(path.dirname(file), blob), part);
    } catch {
      await copyFile(blob, part);
    }
  });
}
