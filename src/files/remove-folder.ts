import { chmod, readdir, rm } from "node:fs/promises";
import path from "node:path";

/** Removes a folder with all that is in it, also where folders in it may not be written, as those of Go's modules. */
export async function removeFolder(dir: string): Promise<void> {
  const remove = async (): Promise<void> =>
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  try {
    await remove();
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EPERM"].includes(code)) throw error;
    await openFolders(dir);
    await remove();
  }
}

/** Gives its owner every right to a folder and to those in it. Links are not followed. */
async function openFolders(dir: string): Promise<void> {
  await chmod(dir, 0o700);
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(path.join(dir, entry.name));
  }
}
