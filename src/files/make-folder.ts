import { mkdir, stat } from "node:fs/promises";
import path from "node:path";

/**
 * Makes a folder and its missing parents; an existing folder is left alone. Node's own recursive `mkdir()` never
 * returns if the parent exists but the file system reports "no such file", as /proc does.
 *
 * @returns the new folders, outermost first.
 * @throws system errors: `ENOENT`, `EACCES`, or `EEXIST` for a file of that name.
 */
export async function makeFolder(dir: string): Promise<readonly string[]> {
  return await make(dir, true);
}

async function make(dir: string, mayLackParent: boolean): Promise<readonly string[]> {
  try {
    await mkdir(dir);
    return [dir];
  } catch (error) {
    if (await isFolder(dir)) return [];
    const parent = path.dirname(dir);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" || parent === dir || !mayLackParent) throw error;
    // Another process may have made it in the meantime.
    const above = (await isFolder(parent)) ? [] : await make(parent, true);
    return [...above, ...(await make(dir, false))];
  }
}

async function isFolder(dir: string): Promise<boolean> {
  try {
    return (await stat(dir)).isDirectory();
  } catch {
    return false;
  }
}
