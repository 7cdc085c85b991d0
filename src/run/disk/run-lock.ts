import { randomBytes } from "node:crypto";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { type Clock, systemClock } from "../../async/clock.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { claimLock, holderBytes, type LockClaim } from "./claim-lock.ts";
import { closedEarly } from "../schedule/closed-early.ts";
import { type FileFacts, type Files, type OpenFile, codeOf, diskFiles, writeAll } from "./files.ts";
import { describeHolder, readHolder, type LockHolder, type Standing } from "./lock-holder.ts";
import { removeLeftovers, removeOwn } from "./lock-leftovers.ts";
import { type Machine, thisMachine } from "./process-place.ts";
import { storageError } from "./storage-error.ts";

/** The lock's file in the run's folder. */
export const lockFile = "run.lock";

/** How a run's folder is locked. */
export interface LockOptions {
  readonly files?: Files;
  readonly machine?: Machine;
  /**
   * How long a holder on another machine, from before a reboot or on a system without a boot id
   * counts as running without a sign of life, in milliseconds. Default: two minutes.
   */
  readonly leaseMs?: number;
  /** Pause between two signs of life, in milliseconds. Default: ten seconds. */
  readonly heartbeatMs?: number;
  /** Milliseconds since the epoch. Default: the machine's. */
  readonly now?: () => number;
  readonly sleep?: Clock["sleep"];
  /** What others are told of this process. Default: the name of its script; its arguments may hold keys. */
  readonly command?: string;
  readonly signal?: AbortSignal;
  /** Told why taking the lock lasts. */
  readonly onWait?: (why: string) => void;
}

const pollMs = 1_000;

/** Signs of life that are given, one after the other, to be sure of the lock. */
const mostSigns = 3;

/**
 * The right to write a run's folder: `run.lock`, which names its holder.
 *
 * A holder on this machine (same boot, same pid namespace) is asked of the system: a lock whose
 * process is dead is taken over at once. Any other holder, on another machine, in another container
 * or from before a reboot, keeps the lock by a sign of life every ten seconds, which is a write to
 * the lock's file; whoever wants the folder waits for the next sign (and is refused), or until there
 * was none for two minutes (and takes over). Both times are the file server's, so that the clocks of
 * the machines need not agree. Where the system has no boot id (macOS, Windows) that holds of every
 * holder: its machine may be another of the same name, and its number another process's by now.
 *
 * On a network file system this needs hard links or exclusive creation to be atomic (NFS 3 and later,
 * Lustre, CephFS, SMB are) and file times within the lease (NFS caches them for up to a minute). What
 * no lock without help from the server can exclude: a process that stands still for more than two
 * minutes exactly between its check and its write. Before each write it is asked whose file the lock is.
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
   * @throws UsageError where another process holds it, naming that, or the folder cannot be written.
   * @throws the signal's reason where it is aborted while there is a holder to wait for.
   */
  static async take(dir: string, options: LockOptions = {}): Promise<RunLock> {
    const { files = diskFiles, leaseMs = 120_000, heartbeatMs = 10_000, now = Date.now } = options;
    // Whoever plays may change the working directory meanwhile.
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
      // Nobody else would: this process, which the lock names, is running.
      await removeOwn(files, file, holder.id);
      throw storageError("write", file, error);
    }
  }

  /**
   * Returns while the lock is surely held. The disk is asked each time: this process may have stood still, and its
   * clock with it. Where it does not answer, the last sign of life tells.
   *
   * @throws UsageError where another process took over, the folder is gone, or the lock was given back.
   */
  async confirm(): Promise<void> {
    if (this.#isDoubtful) {
      // A sign that is under way may have been begun before the file server stood still: it says nothing of now.
      for (let count = 0; count < mostSigns && this.#isDoubtful; count++) await this.renew();
    } else if (this.#isHeld) await this.#look();
    if (this.#isReleased) throw closedEarly(path.dirname(this.file));
    if (this.#lost !== undefined) throw this.#lost;
    if (this.#sinceRenewalMs() < this.#leaseMs) return;
    if (this.#renewalError !== undefined)
      throw storageError("write", this.file, this.#renewalError);
    throw new UsageError(
      `Cannot go on writing ${path.dirname(this.file)}: its disk takes longer than ${this.#leaseMs / 1000} s ` +
        "for a sign of life, and others may take the run for dead; start the same command again",
    );
  }

  get #isDoubtful(): boolean {
    return this.#isHeld && this.#sinceRenewalMs() >= this.#leaseMs / 2;
  }

  /** As far as is known. */
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

  /** @returns whether the lock's file is the one that we made; where it is not, the lock is lost. */
  #checkOwner(facts: FileFacts | undefined): boolean {
    if (facts?.identity === this.#identity) return true;
    if (this.#isReleased) return false;
    const what =
      facts === undefined
        ? "the folder was moved or deleted"
        : "another process took the run over while this one stood still";
    this.#lost = new UsageError(
      `Cannot go on writing ${path.dirname(this.file)}: ${what}; finished episodes are kept where they are`,
    );
    return false;
  }

  /** Gives a sign of life; is called every few seconds. A failure is told by `confirm()`. */
  async renew(): Promise<void> {
    this.#renewing ??= this.#writeSign();
    await this.#renewing;
  }

  async #writeSign(): Promise<void> {
    // It counts from before: whoever stands still in the middle of it does not know how old it is.
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
   * Gives the lock back; one that is not surely ours any more stays as it is, and so does one that the disk does
   * not let go of: whoever comes next finds that its holder is gone.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    clearInterval(this.#timer);
    await this.#renewing;
    // The clock may have been set, or this process stood still: a sign of life tells, and keeps others away meanwhile.
    if (this.#lost === undefined && this.#sinceRenewalMs() >= this.#leaseMs / 2) await this.renew();
    try {
      const isOurs = this.#lost === undefined && this.#sinceRenewalMs() < this.#leaseMs;
      const facts = isOurs ? await this.#files.facts(this.file) : undefined;
      if (facts?.identity === this.#identity) await this.#files.remove(this.file);
    } catch (error) {
      // What the disk refused of the run itself is what is to be told.
      if (codeOf(error) === undefined) throw error;
    } finally {
      await this.#open.close();
    }
  }
}

/** @throws UsageError where the lock is another's by now, or nobody's. */
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

/** Program and arguments without the interpreter, and without the passwords and keys of addresses. */
export function commandLine([, script = "", ...parts]: readonly string[]): string {
  const text = [path.basename(script, ".js"), ...parts].join(" ");
  const redactor = new Redactor();
  for (const [address] of text.matchAll(/[a-z][a-z\d+.-]*:\/\/\S+/gi)) redactor.learnUrl(address);
  return redactor.text(text.replaceAll(/\/\/[^/@\s]+@/g, "//…@")).slice(0, 500);
}

/** Keeps a file with our holder's text beside the lock while `work` runs. */
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
