import { readdir, readFile } from "node:fs/promises";

/** Signals a process and the processes that it started. */
export function killGroup(pid: number, signal: "SIGTERM" | "SIGKILL" = "SIGKILL"): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // ESRCH: all of them have ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Kills the processes that were started with a variable of this value, also those that left their
 * group. Only Linux lists the variables of processes; other systems keep them.
 */
export async function killMarked(variable: string, value: string): Promise<void> {
  const mark = `\0${variable}=${value}\0`;
  for (const name of await readdir("/proc").catch(() => [])) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const variables = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
    if (!`\0${variables}\0`.includes(mark)) continue;
    killGroup(pid);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has ended by itself.
    }
  }
}
