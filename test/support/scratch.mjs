// Has tests keep their temporary files in memory, where there is room for them: tens of thousands are written,
// each of them synced, read and taken away again. All that is left of them goes in the end.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import path from "node:path";

/** A file system in memory, where the machine has one. */
const memory = "/dev/shm";
const prefix = "turnwright-tests-";
/** Of the memory's. What the tests have there at once is a tenth of it. */
const leastBytes = 4 * 2 ** 30;

/** What the test runner calls before the first test; it returns what is called behind the last. */
export default function setup() {
  // Whoever has named a place wants that one.
  if (process.env.TMPDIR !== undefined) return undefined;
  const dir = path.join(memory, `${prefix}${process.pid}`);
  try {
    removeAbandoned();
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < leastBytes) return undefined;
    mkdirSync(dir);
  } catch {
    return undefined;
  }
  const remove = () => rmSync(dir, { recursive: true, force: true });
  if (!runsPrograms(dir)) {
    remove();
    return undefined;
  }
  process.env.TMPDIR = dir;
  return remove;
}

/** Removes what runs left that were killed. */
function removeAbandoned() {
  for (const name of readdirSync(memory)) {
    if (name.startsWith(prefix) && !isRunning(Number(name.slice(prefix.length)))) {
      rmSync(path.join(memory, name), { recursive: true, force: true });
    }
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

/** Containers often mount it so that nothing there can be run. */
function runsPrograms(dir) {
  const file = path.join(dir, "probe");
  writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
  const { status } = spawnSync(file);
  rmSync(file);
  return status === 0;
}
