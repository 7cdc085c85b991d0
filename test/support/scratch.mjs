// Has tests keep their temporary files in memory, where there is room for them: tens of thousands are written,
// each of them synced, read and taken away again. All that is left of them goes in the end.
import { spawnSync } from "node:child_process";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createOwnFolder } from "./own-folder.mjs";

/** A file system in memory, where the machine has one. */
const memory = "/dev/shm";
/** Of the memory's. What the tests have there at once is a tenth of it. */
const leastBytes = 4 * 2 ** 30;

/** What the test runner calls before the first test; it returns what is called behind the last. */
export default function setup() {
  // Whoever has named a place wants that one.
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
    // There is none, or it is not for this user.
  }
  return undefined;
}

/** Containers often mount it so that nothing there can be run. */
function runsPrograms(dir) {
  const file = path.join(dir, "probe");
  writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
  const { status } = spawnSync(file);
  rmSync(file);
  return status === 0;
}
