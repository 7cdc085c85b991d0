import { mkdir, stat } from "node:fs/promises";
import path from "node:path";

/**
 * Makes a folder with those above it; one that is there is left as it is. Node's own recursive `mkdir()`
 * never returns where a file system has the parent and yet answers "no such file", as /proc does.
 *
 * @throws what the system says: `ENOENT`, `EACCES`, `EEXIST` for a file of that name.
 */
export async function makeFolder(dir: string): Promise<void> {
  try {
    await mkdir(dir);
  } catch (error) {
    if (await isFolder(dir)) return;
    const parent = path.dirname(dir);
    const isParentMissing =
      (error as NodeJS.ErrnoException).code === "ENOENT" && !(await isFolder(parent));
    if (!isParentMissing || parent === dir) throw error;
    await makeFolder(parent);
    await makeFolder(dir);
  }
}

async function isFolder(dir: string): Promise<boolean> {
  try {
    return (await stat(dir)).isDirectory();
  } catch {
    return false;
  }
}
