import { readFile, readlink } from "node:fs/promises";
import { hostname, uptime } from "node:os";

/** The identity of a running process, as unique as the system allows. JSON-able. */
export interface ProcessPlace {
  readonly pid: number;
  readonly host: string;
  /** The id of the machine's boot, which differs after each one. Absent on macOS and Windows. */
  readonly bootId?: string;
  /** The start time of the machine by its own clock, in milliseconds since the epoch; used without a boot id. */
  readonly bootedAtMs?: number;
  /** The namespace of the pid: containers on one machine have several. */
  readonly pidNamespace?: string;
  /** The start time of the process in the system's unit. It distinguishes processes with the same pid. */
  readonly processStart?: string;
}

/** Questions to the machine about processes. Tests replace it to simulate dead processes. */
export interface Machine {
  /** Returns the identity of this process. */
  here(): Promise<ProcessPlace>;
  /** True if a process of this machine is running. */
  isRunning(place: ProcessPlace): Promise<boolean>;
}

/** The machine of this process. */
export const thisMachine: Machine = {
  here: async () => {
    const bootId = await readOrNothing("/proc/sys/kernel/random/boot_id");
    const pidNamespace = await readlink("/proc/self/ns/pid").catch(() => undefined);
    const own = await readProcess(process.pid);
    return {
      pid: process.pid,
      host: hostname(),
      ...(bootId === undefined
        ? { bootedAtMs: Date.now() - Math.round(uptime() * 1000) }
        : { bootId: bootId.trim() }),
      ...(pidNamespace !== undefined && { pidNamespace }),
      ...(own !== undefined && { processStart: own.start }),
    };
  },
  isRunning: async ({ pid, processStart }) => {
    if (!isKnownPid(pid)) return false;
    const found = await readProcess(pid);
    if (found === undefined) return true;
    // A dead process keeps its pid until its parent has collected it.
    return !found.isDead && (processStart === undefined || processStart === found.start);
  },
};

/**
 * True if this system knows whether the other process runs: same machine, same boot, same pid namespace. Without a boot
 * id only the host names are compared, which two machines may share.
 */
export function isSameMachine(here: ProcessPlace, other: ProcessPlace): boolean {
  const isSameBoot = here.bootId === other.bootId && here.pidNamespace === other.pidNamespace;
  return isSameBoot && (here.bootId !== undefined || here.host === other.host);
}

/** The tolerance when boot times are compared, in milliseconds: systems count them in whole seconds. */
const bootToleranceMs = 5000;

/**
 * True if both processes belong to one boot of one machine. Without a boot id, host name and boot time are compared.
 */
export function isSameStart(here: ProcessPlace, other: ProcessPlace): boolean {
  if (!isSameMachine(here, other)) return false;
  if (here.bootId !== undefined) return true;
  const [one, another] = [here.bootedAtMs, other.bootedAtMs];
  return one !== undefined && another !== undefined && Math.abs(one - another) <= bootToleranceMs;
}

function isKnownPid(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Reads a process's entry in `/proc`; returns `undefined` if it has no entry. */
async function readProcess(
  pid: number,
): Promise<{ readonly isDead: boolean; readonly start: string } | undefined> {
  const text = await readOrNothing(`/proc/${pid}/stat`);
  // The name is in parentheses and may hold any text; state and start time follow it.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, start] = [fields?.[0], fields?.[19]];
  if (state === undefined || start === undefined) return undefined;
  return { isDead: state === "Z" || state === "X", start };
}

async function readOrNothing(file: string): Promise<string | undefined> {
  return await readFile(file, "utf8").catch(() => undefined);
}
