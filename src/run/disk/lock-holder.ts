import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";
import { type FileFacts, type Files, type OpenFile, readBytes, withFile } from "./files.ts";
import { type Machine, type ProcessPlace, isSameMachine, isSameStart } from "./process-place.ts";

/** The process that has a lock, as the lock file names it. JSON-able. */
export interface LockHolder extends ProcessPlace {
  readonly format: 1;
  /** An id that is different each time that a lock is taken. */
  readonly id: string;
  /** The time at which the lock was taken, ISO 8601. */
  readonly since: string;
  /** The command line, without passwords in addresses. */
  readonly command: string;
}

/**
 * The state of the process that has a lock (its holder). `running` and `gone` are certain for a process on this
 * machine. `elsewhere` means that only the lease decides: the holder is `gone` when the lease has expired. Without a
 * boot id (macOS, Windows), another machine may have the same name: `running` counts only within the lease, and `gone`
 * only if both machines started at the same time.
 */
export interface Standing {
  readonly id: string;
  /** The holder. Absent if the lock file cannot be read. */
  readonly holder?: LockHolder;
  readonly state: "running" | "gone" | "elsewhere";
  /** The time of the holder's last heartbeat, by the file system's clock. */
  readonly seenAtMs: number;
}

const holderSchema = z.object({
  format: z.literal(1),
  id: z.string().regex(/^[\w-]{1,64}$/),
  since: z.string(),
  command: z.string(),
  pid: z.int().min(1),
  host: z.string(),
  bootId: z.string().optional(),
  bootedAtMs: z.number().optional(),
  pidNamespace: z.string().optional(),
  processStart: z.string().optional(),
});

/** The machine, the clock and the lease by which a lock's file is judged. */
export interface LockJudge {
  readonly files: Files;
  readonly machine: Machine;
  readonly here: ProcessPlace;
  /** Returns the file system's time in milliseconds since the epoch. */
  readonly fileSystemNow: () => Promise<number>;
  /** The time without a heartbeat after which a holder on another machine counts as gone, in milliseconds. */
  readonly leaseMs: number;
}

/** Reads the state of a lock's holder; returns `undefined` if the file does not exist. */
export async function readStanding(judge: LockJudge, file: string): Promise<Standing | undefined> {
  const read = await withFile(judge.files, file, readHolder);
  if (read === undefined) return undefined;
  const { facts, holder } = read;
  const seenAtMs = facts.writtenAtMs;
  // A file that cannot be read is being written, or a crash tore it. Its age decides.
  const id = holder?.id ?? `${facts.identity}-${seenAtMs}`.replaceAll(/[^\w-]/g, "-");
  const isHere = holder !== undefined && isSameMachine(judge.here, holder);
  const isRunning = isHere && (await judge.machine.isRunning(holder));
  if (isHere && holder.bootId !== undefined) {
    return { id, holder, state: isRunning ? "running" : "gone", seenAtMs };
  }
  const isOver = (await judge.fileSystemNow()) - seenAtMs >= judge.leaseMs;
  // Without a boot id, another process may have this pid by now, or another machine the same name. The process is gone
  // at once only if both machines started at the same time.
  const isGone = isOver || (!isRunning && holder !== undefined && isSameStart(judge.here, holder));
  const state = isGone ? "gone" : isRunning ? "running" : "elsewhere";
  return { id, ...(holder !== undefined && { holder }), state, seenAtMs };
}

/**
 * Reads the holder and the write time of an open lock file. Both come from the same file, even if another process
 * replaces the file in between.
 */
export async function readHolder(
  open: OpenFile,
): Promise<{ readonly facts: FileFacts; readonly holder: LockHolder | undefined }> {
  const facts = await open.facts();
  const bytes = await readBytes(open, { start: 0, end: facts.size });
  return { facts, holder: parseHolder(bytes.toString("utf8")) };
}

function parseHolder(text: string): LockHolder | undefined {
  const parsed = holderSchema.safeParse(parseJsonText(text));
  return parsed.success ? (parsed.data as LockHolder) : undefined;
}

/** Describes a holder for an error message. */
export function describeHolder({ holder }: Standing): string {
  if (holder === undefined) return "a process that cannot be named";
  const { pid, host, since, command } = holder;
  return `process ${pid} on ${host} since ${since} (${command})`;
}
