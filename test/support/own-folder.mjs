// Folders that a run of the tests has to itself.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";

const dayMs = 24 * 60 * 60 * 1000;

/**
 * Creates a folder with this prefix, and removes the folders of runs that were killed; `remove()`
 * ends it.
 */
export function createOwnFolder(parent, prefix = "") {
  mkdirSync(parent, { recursive: true });
  const own = new RegExp(`^${prefix}(\\d+)-`);
  for (const name of readdirSync(parent)) {
    const [, pid] = own.exec(name) ?? [];
    if (pid !== undefined) removeAbandoned(path.join(parent, name), Number(pid));
  }
  const dir = mkdtempSync(path.join(parent, `${prefix}${process.pid}-`));
  const remove = () => rmSync(dir, { recursive: true, force: true });
  // A run that is stopped by Ctrl-C leaves no folder either.
  process.once("exit", remove);
  return { dir, remove };
}

/**
 * Its process is gone. A process of another container that shares the folder would have used it
 * since.
 */
function removeAbandoned(dir, pid) {
  try {
    if (isRunning(pid) || Date.now() - statSync(dir).mtimeMs < dayMs) return;
    rmSync(dir, { recursive: true, force: true });
  } catch {
    // The folder belongs to another user.
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch ({ code }) {
    return code === "EPERM";
  }
}
