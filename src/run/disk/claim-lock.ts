import { type Files, type OpenFile, codeOf, writeAll } from "./files.ts";
import { type LockHolder, type LockJudge, type Standing, readStanding } from "./lock-holder.ts";

/** The lock that is claimed, and the process that claims it. */
export interface LockClaim extends LockJudge {
  readonly own: LockHolder;
  /** The path of a file that this process wrote with its own holder text. */
  readonly draft: string;
}

/** The maximum number of nested takeovers. Each level stands for a crash between two system calls. */
const maxDepth = 16;

/** Error codes of file systems without hard links. */
const unlinkable = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/**
 * Writes this process's name into the lock file. If another process has the lock, returns that process and its state.
 *
 * The lock file is created complete, by a hard link, which fails if the file exists. So only one process can succeed.
 * To take the lock over from a dead process, this process first claims a second file, named after the dead one. Only
 * the owner of the second file may remove the dead process's lock file. A process that claims the second file later
 * finds that the lock file is gone or names another process, and starts again. If the owner of a second file dies, that
 * file is taken over in the same way.
 */
export async function claimLock(
  claim: LockClaim,
  file: string,
  depth = 0,
): Promise<"claimed" | Standing> {
  for (;;) {
    if (await createLock(claim, file)) return "claimed";
    const standing = await readStanding(claim, file);
    if (standing === undefined) continue;
    if (standing.id === claim.own.id) return "claimed";
    if (standing.state !== "gone" || depth === maxDepth) return standing;
    const successor = `${file}.${standing.id}`;
    const right = await claimLock(claim, successor, depth + 1);
    if (right !== "claimed") return right;
    try {
      const again = await readStanding(claim, file);
      if (again?.id !== standing.id || again.state !== "gone") continue;
      await claim.files.remove(file);
      if (await createLock(claim, file)) return "claimed";
    } finally {
      await claim.files.remove(successor);
    }
  }
}

/** Creates the file with this process's holder text; returns false if the file exists. */
async function createLock({ files, draft, own }: LockClaim, file: string): Promise<boolean> {
  try {
    await files.link(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    if (!unlinkable.has(codeOf(error) ?? "")) throw error;
  }
  return await createWithoutLink(files, file, own);
}

async function createWithoutLink(files: Files, file: string, own: LockHolder): Promise<boolean> {
  let open: OpenFile;
  try {
    open = await files.open(file, "create");
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
  try {
    await writeAll(open, holderBytes(own), 0);
    await open.sync();
    return true;
  } catch (error) {
    // The first error is the one to report.
    await removeTorn(files, { file, open }).catch(() => {});
    throw error;
  } finally {
    await open.close();
  }
}

/**
 * Removes a lock file that names no process, for which other processes would wait. Does nothing if another file has
 * replaced it.
 */
async function removeTorn(
  files: Files,
  { file, open }: { readonly file: string; readonly open: OpenFile },
): Promise<void> {
  const [current, own] = [await files.facts(file), await open.facts()];
  if (current?.identity === own.identity) await files.remove(file);
}

/** Encodes a holder as the content of the lock's file. */
export function holderBytes(holder: LockHolder): Uint8Array {
  return Buffer.from(`${JSON.stringify(holder)}\n`);
}
