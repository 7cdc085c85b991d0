// Keeps the tests' temporary files in memory, if there is room: tens of thousands are written,
// synced, read and removed. The remaining files are removed at the end.
import { spawnSync } from "node:child_process";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createOwnFolder } from "./own-folder.mjs";

/** A file system in memory, where the machine has one. */
const memory = "/dev/shm";
/** Bytes of memory. The tests have a tenth of it in use at once. */
const leastBytes = 4 * 2 ** 30;

/**
 * Called by the test runner before the first test; returns a function that the runner calls after
 * the last.
 */
export default function setup() {
  // A folder that the user named has priority.
  const { TMPDIR, TMP, TEMP } = process.env;
  if ([TMPDIR, TMP, TEMP].some((place) => place !== undefined)) return undefined;
  try {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < leastBytes) return undefined;
    const { dir, remove } = createOwnFolder(memory, "turnwright-tests-");
    if (runsPrograms(dir)) {
      process.env.TMPDIR = dir;
      return remove;
    }
    remove();
  } catch {
    // The folder is absent, or not writable for this user.
  }
  return undefined;
}

/** Containers often mount it as noexec. */
function runsPrograms(dir) {
  const file = path.join(dir, "probe");
  writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
  const { status } = spawnSync(file);
  rmSync(file);
  return status === 0;
}
