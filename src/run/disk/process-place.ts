import { readFile, readlink } from "node:fs/promises";
import { hostname, uptime } from "node:os";

/** A running process, told apart from all others as well as the system allows. JSON-able. */
export interface ProcessPlace {
  readonly pid: number;
  readonly host: string;
  /** Another after each start of the machine; absent where the system has none (macOS, Windows). */
  readonly bootId?: string;
  /** When the machine was started, in milliseconds since the epoch by its own clock; where there is no boot id. */
  readonly bootedAtMs?: number;
  /** In which numbering the pid counts: containers of one machine have several. */
  readonly pidNamespace?: string;
  /** When the process began, in the system's own count: another process may get its number later. */
  readonly processStart?: string;
}

/** What a lock asks of the machine. A parameter, so that tests can play dead. */
export interface Machine {
  /** This process. */
  here(): Promise<ProcessPlace>;
  /** Whether a process of this machine is running. */
  isRunning(place: ProcessPlace): Promise<boolean>;
}

/** The machine that this process runs on. */
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
    // A dead process keeps its number until its parent has taken note.
    return !found.isDead && (processStart === undefined || processStart === found.start);
  },
};

/**
 * Whether the system can say if the other process runs: it is on the same machine, since the same
 * start, and counted in the same numbering. Where there is no boot id only the names tell, which two
 * machines may share and which say nothing of the start.
 */
export function isSameMachine(here: ProcessPlace, other: ProcessPlace): boolean {
  const isSameBoot = here.bootId === other.bootId && here.pidNamespace === other.pidNamespace;
  return isSameBoot && (here.bootId !== undefined || here.host === other.host);
}

/** How far two readings of the same start may be apart, in milliseconds: systems count it in whole seconds. */
const bootToleranceMs = 5000;

/**
 * Whether both are of one start of one machine, as far as that can be told: where there is no boot id, two machines
 * would have to share their name and the moment of their start.
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
    // EPERM: it is there and another's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** What `/proc` says of a process; `undefined` where there is no such account. */
async function readProcess(
  pid: number,
): Promise<{ readonly isDead: boolean; readonly start: string } | undefined> {
  const text = await readOrNothing(`/proc/${pid}/stat`);
  // The name is in parentheses and may hold anything; the state and the start come after it.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, start] = [fields?.[0], fields?.[19]];
  if (state === undefined || start === undefined) return undefined;
  return { isDead: state === "Z" || state === "X", start };
}

async function readOrNothing(file: string): Promise<string | undefined> {
  return await readFile(file, "utf8").catch(() => undefined);
}
