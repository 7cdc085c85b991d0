import path from "node:path";
import { type Files, codeOf, withFile } from "./files.ts";
import { type LockJudge, readHolder, readStanding } from "./lock-holder.ts";

/** Removes what processes left that died while they took the lock. */
export async function removeLeftovers(
  judge: LockJudge,
  file: string,
  ownId: string,
): Promise<void> {
  for (const name of await besideLock(judge.files, file)) {
    const standing = await readStanding(judge, name);
    if (standing?.state === "gone" && standing.id !== ownId) await judge.files.remove(name);
  }
}

/**
 * Removes the lock and what stands beside it wherever the holder of this id stands in it: what took the lock did
 * not come to its end. Of what the disk refuses here nothing is told: it is told of what it refused before.
 */
export async function removeOwn(files: Files, file: string, ownId: string): Promise<void> {
  try {
    // The lock first: the folder need not be listed for it.
    await removeIfOwn(files, file, ownId);
    for (const name of await besideLock(files, file)) await removeIfOwn(files, name, ownId);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
  }
}

async function removeIfOwn(files: Files, name: string, ownId: string): Promise<void> {
  const found = await withFile(files, name, readHolder);
  if (found?.holder?.id === ownId) await files.remove(name);
}

/** The drafts of the lock, and the rights to take it over. */
async function besideLock(files: Files, file: string): Promise<readonly string[]> {
  const dir = path.dirname(file);
  const prefix = `${path.basename(file)}.`;
  const names = await files.list(dir);
  return names.filter((name) => name.startsWith(prefix)).map((name) => path.join(dir, name));
}
