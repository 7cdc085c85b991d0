// Ends a process with all its descendants, in every session and group.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** The number of reads of the process table, and the wait between them in milliseconds. */
const ATTEMPTS = 500;
const PAUSE_MS = 20;

/**
 * Kills a process, its descendants, and all processes in the groups that these lead. Returns when none of
 * them is left. Synchronous, so that it works while the calling process exits.
 */
export function killTree(root) {
  const known = new Set([root]);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const living = findTree(known);
    if (living.length === 0) return;
    for (const pid of living) kill(pid);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
  throw new Error(`Cannot end process ${root}: some of what it started does not die`);
}

/** Adds the processes that belong to `known`, and returns the living ones. */
function findTree(known) {
  const table = readProcesses();
  for (let size = 0; size !== known.size;) {
    size = known.size;
    for (const { pid, parent, group } of table) {
      if (known.has(parent) || known.has(group)) known.add(pid);
    }
  }
  return table.filter(({ pid, isDead }) => known.has(pid) && !isDead).map(({ pid }) => pid);
}

/** Returns every process of this machine. `isDead`: it has ended, and its parent has not read its status. */
export function readProcesses() {
  return process.platform === "linux" ? readProcFolder() : askPs();
}

/** Small images of Linux have no `ps`. */
function readProcFolder() {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const stat = readStat(name);
    // The program's name is in parentheses, and may contain any character.
    const [state, parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (group === undefined) return [];
    return [toProcess([name, parent, group, state])];
  });
}

function readStat(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return "";
    throw error;
  }
}

function askPs() {
  const listed = execFileSync("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat="], { encoding: "utf8" });
  return listed
    .trim()
    .split("\n")
    .map((line) => toProcess(line.trim().split(/\s+/)));
}

function toProcess([pid, parent, group, state]) {
  const isDead = /^[ZX]/.test(state);
  return { pid: Number(pid), parent: Number(parent), group: Number(group), isDead };
}

function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
