import { randomBytes } from "node:crypto";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { type Clock, systemClock } from "../../async/clock.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { claimLock, holderBytes, type LockClaim } from "./claim-lock.ts";
import { closedEarly } from "./closed-early.ts";
import { type FileFacts, type Files, type OpenFile, codeOf, diskFiles, writeAll } from "./files.ts";
import { describeHolder, readHolder, type LockHolder, type Standing } from "./lock-holder.ts";
import { removeLeftovers, removeOwn } from "./lock-leftovers.ts";
import { type Machine, thisMachine } from "./process-place.ts";
import { storageError } from "./storage-error.ts";

/** The lock's file in a run's folder. */
export const lockFile = "run.lock";

/** Options of a folder's lock. */
export interface LockOptions {
  readonly files?: Files;
  readonly machine?: Machine;
  /**
   * The time for which a holder counts as running without a heartbeat, in milliseconds, if it is on another machine,
   * from before a reboot, or on a system without a boot id. Default: two minutes.
   */
  readonly leaseMs?: number;
  /** The time between two heartbeats, in milliseconds. Default: ten seconds. */
  readonly heartbeatMs?: number;
  /** Returns milliseconds since the epoch. Default: the machine's clock. */
  readonly now?: () => number;
  readonly sleep?: Clock["sleep"];
  /** The command that other processes are shown. Default: the script's name, without arguments, which may hold keys. */
  readonly command?: string;
  readonly signal?: AbortSignal;
  /** Called with the reason if taking the lock has to wait. */
  readonly onWait?: (why: string) => void;
}

const pollMs = 1_000;

/** The maximum number of heartbeats in a row that `confirm()` makes to be sure of the lock. */
const mostSigns = 3;

/**
 * The lock of a run's folder: the file `run.lock`, which names its holder.
 *
 * The system knows if a holder on this machine (same boot, same pid namespace) still runs. A dead process loses the
 * lock at once. Any other holder, on another machine, in another container or from before a reboot, writes a heartbeat
 * to the file every ten seconds. A process that wants the folder waits for the next heartbeat, and is refused then, or
 * takes over after two minutes without one. Both times are the file server's, so the machines' clocks need not agree.
 * Without a boot id (macOS, Windows) this holds for every holder: its host name and its pid may belong to another
 * machine or process.
 *
 * On a network file system, hard links or exclusive creation must be atomic (true for NFS 3 and later, Lustre, CephFS,
 * SMB), and file times must be correct within the lease (NFS caches them for up to a minute). The lock's file is
 * checked before each write. No lock without help from the server can prevent this: a process stands still for more
 * than two minutes between its check and its write.
 */
export class RunLock implements AsyncDisposable {
  readonly file: string;
  readonly #files: Files;
  readonly #open: OpenFile;
  readonly #holder: LockHolder;
  readonly #identity: string;
  readonly #leaseMs: number;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  #renewedAtMs: number;
  #renewing: Promise<void> | undefined;
  #renewalError: unknown;
  #lost: UsageError | undefined;
  #isReleased = false;

  private constructor(
    held: Pick<RunLock, "file"> & {
      readonly files: Files;
      readonly open: OpenFile;
      readonly holder: LockHolder;
      readonly identity: string;
    },
    { leaseMs, heartbeatMs, now }: Required<Pick<LockOptions, "leaseMs" | "heartbeatMs" | "now">>,
  ) {
    this.file = held.file;
    this.#files = held.files;
    this.#open = held.open;
    this.#holder = held.holder;
    this.#identity = held.identity;
    this.#leaseMs = leaseMs;
    this.#now = now;
    this.#renewedAtMs = now();
    this.#timer = setInterval(() => void this.renew(), heartbeatMs).unref();
  }

  /**
   * Takes the lock of a folder.
   *
   * @throws UsageError if another process has it, which the message names, or if the folder cannot be written.
   * @throws the signal's reason if it aborts while this process waits for a holder.
   */
  static async take(dir: string, options: LockOptions = {}): Promise<RunLock> {
    const { files = diskFiles, leaseMs = 120_000, heartbeatMs = 10_000, now = Date.now } = options;
    // An environment may change the working directory later.
    const file = path.resolve(dir, lockFile);
    const holder = await describeSelf(options, now());
    try {
      await holdDraft(files, { file, holder }, async (draft, fileSystemNow) => {
        const { machine = thisMachine } = options;
        const here = holder;
        const judge = { files, machine, here, fileSystemNow, leaseMs };
        await waitForLock({ ...judge, own: holder, draft }, file, options);
        await removeLeftovers(judge, file, holder.id);
      });
      const open = await files.open(file, "update");
      const { identity } = await ownFactsOrClose(open, { dir, holder });
      return new RunLock({ file, files, open, holder, identity }, { leaseMs, heartbeatMs, now });
    } catch (error) {
      // No other process would remove it: the holder that it names, this process, is running.
      await removeOwn(files, file, holder.id);
      throw storageError("write", file, error);
    }
  }

  /**
   * Returns if this process surely has the lock. Asks the disk each time, because the process may have stood still. If
   * the disk does not answer, the age of the last heartbeat decides.
   *
   * @throws UsageError if another process took over, the folder is gone, or the lock was released.
   */
  async confirm(): Promise<void> {
    if (this.#isDoubtful) {
      // A heartbeat that started before the file server stood still proves nothing about now.
      for (let count = 0; count < mostSigns && this.#isDoubtful; count++) await this.renew();
    } else if (this.#isHeld) await this.#look();
    if (this.#isReleased) throw closedEarly(path.dirname(this.file));
    if (this.#lost !== undefined) throw this.#lost;
    if (this.#sinceRenewalMs() < this.#leaseMs) return;
    if (this.#renewalError !== undefined)
      throw storageError("write", this.file, this.#renewalError);
    throw new UsageError(
      `Cannot continue writing ${path.dirname(this.file)}: its disk takes longer than ${this.#leaseMs / 1000} s ` +
        "for a sign of life, and others may take the run for dead; start the same command again",
    );
  }

  get #isDoubtful(): boolean {
    return this.#isHeld && this.#sinceRenewalMs() >= this.#leaseMs / 2;
  }

  /** True unless the lock was released or is known to be lost. */
  get #isHeld(): boolean {
    return !this.#isReleased && this.#lost === undefined;
  }

  async #look(): Promise<void> {
    try {
      this.#checkOwner(await this.#files.facts(this.file));
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
    }
  }

  /** Returns true if the lock's file is the one that this process made; otherwise the lock is lost. */
  #checkOwner(facts: FileFacts | undefined): boolean {
    if (facts?.identity === this.#identity) return true;
    if (this.#isReleased) return false;
    const what =
      facts === undefined
        ? "the folder was moved or deleted"
        : "another process took the run over while this one stood still";
    this.#lost = new UsageError(
      `Cannot continue writing ${path.dirname(this.file)}: ${what}; finished episodes are kept where they are`,
    );
    return false;
  }

  /** Writes a heartbeat. Called every few seconds. `confirm()` reports a failure. */
  async renew(): Promise<void> {
    this.#renewing ??= this.#writeSign();
    await this.#renewing;
  }

  async #writeSign(): Promise<void> {
    // The heartbeat counts from before the write: the process may stand still during it.
    const signedAtMs = this.#now();
    try {
      if (!this.#checkOwner(await this.#files.facts(this.file))) return;
      await writeAll(this.#open, holderBytes(this.#holder), 0);
      await this.#open.sync();
      this.#renewedAtMs = signedAtMs;
      this.#renewalError = undefined;
    } catch (error) {
      this.#renewalError = error;
    } finally {
      this.#renewing = undefined;
    }
  }

  #sinceRenewalMs(): number {
    return this.#now() - this.#renewedAtMs;
  }

  /**
   * Releases the lock. Keeps the file if the lock may be lost, or if the disk refuses to remove it: the next process
   * finds that its holder is gone.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    clearInterval(this.#timer);
    await this.#renewing;
    // The clock may have been set, or this process stood still. A heartbeat finds out, and keeps other processes away.
    if (this.#lost === undefined && this.#sinceRenewalMs() >= this.#leaseMs / 2) await this.renew();
    try {
      const isOurs = this.#lost === undefined && this.#sinceRenewalMs() < this.#leaseMs;
      const facts = isOurs ? await this.#files.facts(this.file) : undefined;
      if (facts?.identity === this.#identity) await this.#files.remove(this.file);
    } catch (error) {
      // The error of the run itself is the one to report.
      if (codeOf(error) === undefined) throw error;
    } finally {
      await this.#open.close();
    }
  }
}

/**
 * Reads the facts of the lock's file.
 *
 * @throws UsageError if another process has the lock by now, or the file names no holder.
 */
async function ownFactsOrClose(
  open: OpenFile,
  { dir, holder }: { readonly dir: string; readonly holder: LockHolder },
): Promise<FileFacts> {
  try {
    const found = await readHolder(open);
    if (found.holder?.id === holder.id) return found.facts;
    throw new UsageError(
      `Cannot use ${dir}: another process took it over while this one stood still; wait for it or ` +
        "stop it, then start again",
    );
  } catch (error) {
    await open.close();
    throw error;
  }
}

async function describeSelf(options: LockOptions, nowMs: number): Promise<LockHolder> {
  const { machine = thisMachine, command = commandLine(process.argv.slice(0, 2)) } = options;
  const id = randomBytes(6).toString("hex");
  const since = new Date(nowMs).toISOString();
  return { format: 1, id, since, command, ...(await machine.here()) };
}

/** Returns the program and its arguments without the interpreter, and without passwords and keys in URLs. */
export function commandLine([, script = "", ...parts]: readonly string[]): string {
  const text = [path.basename(script, ".js"), ...parts].join(" ");
  const redactor = new Redactor();
  for (const [address] of text.matchAll(/[a-z][a-z\d+.-]*:\/\/\S+/gi)) redactor.learnUrl(address);
  return redactor.text(text.replaceAll(/\/\/[^/@\s]+@/g, "//…@")).slice(0, 500);
}

/** Keeps a draft file with the holder's text next to the lock while `work` runs. */
async function holdDraft(
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

async function waitForLock(
  claim: LockClaim,
  file: string,
  { sleep = systemClock.sleep, signal, onWait }: LockOptions,
): Promise<void> {
  let known: Standing | undefined;
  for (;;) {
    const result = await claimLock(claim, file);
    if (result === "claimed") return;
    const hasSigned = known?.id === result.id && result.seenAtMs > known.seenAtMs;
    if (result.state === "running" || hasSigned) throw inUse(file, result);
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
      `stop it, or choose another --out (if it surely is no run, remove ${file})`,
  );
}
