import { randomBytes } from "node:crypto";
import path from "node:path";
import { systemClock } from "../../async/clock.ts";
import { UsageError } from "../../errors.ts";
import { claimLock, holderBytes, type LockClaim } from "./claim-lock.ts";
import { commandLine } from "./command-line.ts";
import { type Files, writeAll } from "./files.ts";
import { describeHolder, type LockHolder, type Standing } from "./lock-holder.ts";
import type { LockOptions } from "./lock-options.ts";
import { thisMachine } from "./process-place.ts";

/** The interval at which the state of another process's lock is read, in milliseconds. */
const pollMs = 1_000;

/** Describes this process as the holder of a lock. */
export async function describeSelf(options: LockOptions, nowMs: number): Promise<LockHolder> {
  const { machine = thisMachine, command = commandLine(process.argv.slice(0, 2)) } = options;
  const id = randomBytes(6).toString("hex");
  const since = new Date(nowMs).toISOString();
  return { format: 1, id, since, command, ...(await machine.here()) };
}

/** Keeps a draft file with the holder's text next to the lock while `work` runs. */
export async function holdDraft(
  files: Files,
  { file, holder }: { readonly file: string; readonly holder: LockHolder },
  work: (draft: string, fileSystemNow: () => Promise<number>) => Promise<void>,
): Promise<void> {
  const draft = `${file}.${holder.id}.draft`;
  const open = await files.open(draft, "create");
  try {
    const write = async (): Promise<number> => {
      await writeAll(open, holderBytes(holder), 0);
      await open.sync();
      return (await open.facts()).writtenAtMs;
    };
    await write();
    await work(draft, write);
  } finally {
    await open.close();
    await files.remove(draft);
  }
}

/**
 * Waits until this process has claimed the lock.
 *
 * @throws UsageError as soon as the holder is known to run.
 * @throws the signal's reason if it aborts first.
 */
export async function waitForLock(
  claim: LockClaim,
  file: string,
  { sleep = systemClock.sleep, signal, onWait }: LockOptions,
): Promise<void> {
  let known: Standing | undefined;
  for (;;) {
    const result = await claimLock(claim, file);
    if (result === "claimed") return;
    const hasNewHeartbeat = known?.id === result.id && result.seenAtMs > known.seenAtMs;
    if (result.state === "running" || hasNewHeartbeat) throw inUse(file, result);
    if (known?.id !== result.id) {
      known = result;
      onWait?.(
        `${path.dirname(file)} is locked by ${describeHolder(result)}: waiting until it gives a sign ` +
          `of life or has given none for ${claim.leaseMs / 1000} s`,
      );
    }
    await sleep(pollMs, signal === undefined ? {} : { signal });
  }
}

function inUse(file: string, standing: Standing): UsageError {
  return new UsageError(
    `Cannot use ${path.dirname(file)}: ${describeHolder(standing)} is writing there; wait for it or ` +
      `stop it, or choose another --out (if it is certainly not a run, remove ${file})`,
  );
}
