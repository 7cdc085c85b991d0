import path from "node:path";
import { UsageError } from "../../errors.ts";
import { holderBytes } from "./claim-lock.ts";
import { closedEarly } from "./closed-early.ts";
import { type FileFacts, type Files, type OpenFile, codeOf, diskFiles, writeAll } from "./files.ts";
import { readHolder, type LockHolder } from "./lock-holder.ts";
import { removeLeftovers, removeOwn } from "./lock-leftovers.ts";
import type { LockOptions } from "./lock-options.ts";
import { thisMachine } from "./process-place.ts";
import { storageError } from "./storage-error.ts";
import { describeSelf, holdDraft, waitForLock } from "./wait-for-lock.ts";

/** The lock's file in a run's folder. */
export const lockFile = "run.lock";

/** The maximum number of heartbeats in a row that `confirm()` makes to be sure of the lock. */
const mostHeartbeats = 3;

/**
 * The lock of a run's folder: the file `run.lock`, which names its holder.
 *
 * The system knows if a holder on this machine (same boot, same pid namespace) still runs. A dead process loses the
 * lock immediately. Any other holder, on another machine, in another container or from before a reboot, writes a
 * heartbeat to the file every ten seconds. A process that wants the folder waits for the next heartbeat, and is refused
 * then, or takes over after two minutes without one. Both times are the file server's, so the machines' clocks need not
 * agree. Without a boot id (macOS, Windows) this holds for every holder: its host name and its pid may belong to
 * another machine or process.
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
   * Returns only if this process surely has the lock. Reads the lock file each time, because the process may have been
   * stopped for a while. If the disk does not answer, the age of the last heartbeat decides.
   *
   * @throws UsageError if another process took over, the folder is gone, or the lock was released.
   */
  async confirm(): Promise<void> {
    if (this.#isDoubtful) {
      // A heartbeat that started before the file server stood still proves nothing about now.
      for (let count = 0; count < mostHeartbeats && this.#isDoubtful; count++) await this.renew();
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

  /** Writes a heartbeat. Called at each interval of heartbeats. If writing fails, the next `confirm()` throws. */
  async renew(): Promise<void> {
    this.#renewing ??= this.#writeHeartbeat();
    await this.#renewing;
  }

  async #writeHeartbeat(): Promise<void> {
    // The heartbeat counts from before the write: the process may stand still during it.
    const startedAtMs = this.#now();
    try {
      if (!this.#checkOwner(await this.#files.facts(this.file))) return;
      await writeAll(this.#open, holderBytes(this.#holder), 0);
      await this.#open.sync();
      this.#renewedAtMs = startedAtMs;
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
