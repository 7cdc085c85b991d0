import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";
import { type FileFacts, type Files, type OpenFile, readBytes, withFile } from "./files.ts";
import { type Machine, type ProcessPlace, isSameMachine, isSameStart } from "./process-place.ts";

/** Who holds a lock, as its file says it. JSON-able. */
export interface LockHolder extends ProcessPlace {
  readonly format: 1;
  /** Another for each time that the lock is taken. */
  readonly id: string;
  /** When the lock was taken, ISO 8601. */
  readonly since: string;
  /** The command line, without passwords in addresses. */
  readonly command: string;
}

/**
 * Who stands in a lock's file: `running` and `gone` as the system says it of a process of this machine,
 * `elsewhere` where only the lease can tell; `gone`, too, where the lease is over. Of a system without a
 * boot id the word counts within the lease alone, and that a process is gone only where the machine was started
 * when the holder's was: another may have the same name.
 */
export interface Standing {
  readonly id: string;
  /** Absent where the file cannot be read. */
  readonly holder?: LockHolder;
  readonly state: "running" | "gone" | "elsewhere";
  /** When the holder gave its last sign of life, by the file system's clock. */
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

/** What a judgement of a lock's file needs. */
export interface LockJudge {
  readonly files: Files;
  readonly machine: Machine;
  readonly here: ProcessPlace;
  /** The file system's own time, in milliseconds since the epoch. */
  readonly fileSystemNow: () => Promise<number>;
  /** For so long a holder elsewhere counts as running without a sign of life, in milliseconds. */
  readonly leaseMs: number;
}

/** Who stands in the file; `undefined` where there is no such file. */
export async function readStanding(judge: LockJudge, file: string): Promise<Standing | undefined> {
  const read = await withFile(judge.files, file, readHolder);
  if (read === undefined) return undefined;
  const { facts, holder } = read;
  const seenAtMs = facts.writtenAtMs;
  // What cannot be read is being written, or was torn by a crash: its age tells.
  const id = holder?.id ?? `${facts.identity}-${seenAtMs}`.replaceAll(/[^\w-]/g, "-");
  const isHere = holder !== undefined && isSameMachine(judge.here, holder);
  const isRunning = isHere && (await judge.machine.isRunning(holder));
  if (isHere && holder.bootId !== undefined) {
    return { id, holder, state: isRunning ? "running" : "gone", seenAtMs };
  }
  const isOver = (await judge.fileSystemNow()) - seenAtMs >= judge.leaseMs;
  // Without a boot id another process may have the number by now, or another machine bear the name: what is not
  // running is gone at once only where both were started at the same moment, too.
  const isGone = isOver || (!isRunning && holder !== undefined && isSameStart(judge.here, holder));
  const state = isGone ? "gone" : isRunning ? "running" : "elsewhere";
  return { id, ...(holder !== undefined && { holder }), state, seenAtMs };
}

/**
 * What an open lock says, and when it was written. Both are of one file, whoever puts another in its
 * place meanwhile: a new holder is not judged by the age of the one before.
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

/** A holder in the words of a complaint. */
export function describeHolder({ holder }: Standing): string {
  if (holder === undefined) return "a process that cannot be named";
  const { pid, host, since, command } = holder;
  return `process ${pid} on ${host} since ${since} (${command})`;
}
