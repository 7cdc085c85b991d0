// Ends a process with all that it started, whatever sessions and groups these went into.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** How often the table of processes is read, and how long is waited between, in milliseconds. */
const ATTEMPTS = 500;
const PAUSE_MS = 20;

/**
 * Kills a process, everything below it, and everything in the groups that these lead; returns when
 * none of them is left. Synchronous, so that it works while the process that calls it exits.
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

/** Adds to `known` what belongs to it, and returns what of it lives. */
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

/** Every process of this machine; `isDead`: it has ended, and nobody has asked how. */
export function readProcesses() {
  return process.platform === "linux" ? readProcFolder() : askPs();
}

/** Small images of Linux have no `ps`. */
function readProcFolder() {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const stat = readStat(name);
    // The program's name stands in parentheses, and may hold anything.
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
