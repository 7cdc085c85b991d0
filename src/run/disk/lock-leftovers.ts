import path from "node:path";
import { type Files, codeOf, withFile } from "./files.ts";
import { type LockJudge, readHolder, readStanding } from "./lock-holder.ts";

/** Removes files of processes that died while they took the lock. */
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
 * Removes the lock and the files next to it that name this holder, after taking the lock failed. Ignores errors of the
 * disk: the first error is the one to report.
 */
export async function removeOwn(files: Files, file: string, ownId: string): Promise<void> {
  try {
    // The lock is removed first: that works even if the folder cannot be listed.
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

/** Lists the lock's drafts and takeover files. */
async function besideLock(files: Files, file: string): Promise<readonly string[]> {
  const dir = path.dirname(file);
  const prefix = `${path.basename(file)}.`;
  const names = await files.list(dir);
  return names.filter((name) => name.startsWith(prefix)).map((name) => path.join(dir, name));
}
