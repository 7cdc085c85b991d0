import { type Files, type OpenFile, codeOf, writeAll } from "./files.ts";
import { type LockHolder, type LockJudge, type Standing, readStanding } from "./lock-holder.ts";

/** What taking a lock needs. */
export interface LockClaim extends LockJudge {
  readonly own: LockHolder;
  /** A file of our own with our holder's text in it. */
  readonly draft: string;
}

/** Takeovers of takeovers: each stands for a crash in the moment between two system calls. */
const maxDepth = 16;

/** What a file system says that knows no hard links. */
const unlinkable = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/**
 * Puts our name into the lock's file, or says who stands there.
 *
 * A file is only ever created whole and only where there is none (a hard link), so of any number of
 * processes one wins. To take a lock over from a dead holder, a process must first win a second file
 * that is named after that holder: nobody else can then take the dead file away, and whoever judged
 * the same holder dead but comes late finds it gone and starts again. Where a process dies in that
 * moment, its second file is taken over in the same way.
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

/** Creates the file with our holder's text; false where there is a file already. */
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
    // The complaint is about what failed first.
    await removeTorn(files, { file, open }).catch(() => {});
    throw error;
  } finally {
    await open.close();
  }
}

/** Removes a file that names nobody, and would be waited for, unless another's has taken its place. */
async function removeTorn(
  files: Files,
  { file, open }: { readonly file: string; readonly open: OpenFile },
): Promise<void> {
  const [there, own] = [await files.facts(file), await open.facts()];
  if (there?.identity === own.identity) await files.remove(file);
}

/** A holder as the lock's file has it. */
export function holderBytes(holder: LockHolder): Uint8Array {
  return Buffer.from(`${JSON.stringify(holder)}\n`);
}
