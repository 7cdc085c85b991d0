import { randomUUID } from "node:crypto";
import { chmod, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";

/**
 * Removes a folder with its content. Also removes read-only folders, such as those of Go's modules, and nested folders
 * with paths that are too long for the system.
 */
export async function removeFolder(dir: string): Promise<void> {
  const remove = async (): Promise<void> =>
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  try {
    await remove();
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EPERM", "ENAMETOOLONG"].includes(code)) throw error;
    await chmod(dir, 0o700);
    await removeNested(dir);
    await remove();
  }
}

/**
 * Removes the subfolders of a folder, and gives the owner all rights to them first. Moves folders within them to the top,
 * so that no path is long. Does not follow links.
 */
async function removeNested(dir: string): Promise<void> {
  const folders = await foldersIn(dir);
  for (const name of folders) {
    const folder = path.join(dir, name);
    await chmod(folder, 0o700);
    for (const inner of await foldersIn(folder)) {
      const moved = randomUUID();
      await chmod(path.join(folder, inner), 0o700);
      await rename(path.join(folder, inner), path.join(dir, moved));
      folders.push(moved);
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function foldersIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}
