import { randomUUID } from "node:crypto";
import { copyFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { makeFolder } from "../files/make-folder.ts";

/** Name of a file beside another one that no other process uses. */
function nameBeside(file: string): string {
  return `${file}.${randomUUID()}.incomplete`;
}

/**
 * Makes a file appear whole, and in one step in the place of the one that was there, however many processes do so at
 * once. The folders above it are made.
 *
 * @param write - Writes the file of the name that it is given.
 */
export async function replaceFile(
  file: string,
  write: (part: string) => Promise<void>,
): Promise<void> {
  await makeFolder(path.dirname(file));
  const part = nameBeside(file);
  try {
    await write(part);
    await rename(part, file);
  } finally {
    await rm(part, { force: true }).catch(() => undefined);
  }
}

export async function replaceText(file: string, text: string): Promise<void> {
  await replaceFile(file, async (part) => await writeFile(part, text));
}

/** Puts a link to a blob in a file's place, as the hub's own library does; a copy where there are no links. */
export async function replaceLink(file: string, blob: string): Promise<void> {
  await replaceFile(file, async (part) => {
    try {
      await symlink(path.relative(path.dirname(file), blob), part);
    } catch {
      await copyFile(blob, part);
    }
  });
}
