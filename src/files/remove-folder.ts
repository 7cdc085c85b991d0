import { chmod, readdir, rm } from "node:fs/promises";
import path from "node:path";

/** Removes a folder with its content, including read-only folders such as those of Go's modules. */
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

/** Gives the owner all rights to a folder and its subfolders. Does not follow links. */
async function openFolders(dir: string): Promise<void> {
  await chmod(dir, 0o700);
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(path.join(dir, entry.name));
  }
}
