import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { manifestFile } from "../../run/folder/run-manifest.ts";

/** The number of levels below a folder in which runs are searched. */
const maxDepth = 3;

/** True if the folder contains a run. */
export async function isRunFolder(dir: string): Promise<boolean> {
  return await stat(path.join(dir, manifestFile)).then(
    (found) => found.isFile(),
    () => false,
  );
}

/**
 * Finds the runs below a folder, in the order of their names. Does not search within runs and in folders whose names
 * start with a dot.
 *
 * @returns the paths of the runs, relative to the folder.
 */
export async function findRunFolders(dir: string, depth = 1): Promise<readonly string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const names = entries
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .toSorted();
  const found: string[] = [];
  for (const name of names) {
    const place = path.join(dir, name);
    if (await isRunFolder(place)) found.push(name);
    else if (depth < maxDepth) {
      for (const below of await findRunFolders(place, depth + 1)) found.push(`${name}/${below}`);
    }
  }
  return found;
}
