import path from "node:path";
import type { Files } from "../disk/files.ts";
import { JsonlJournal } from "../disk/jsonl-journal.ts";
import type { RunLock } from "../disk/run-lock.ts";
import { closedEarly } from "../disk/closed-early.ts";
import type { FolderJournal } from "./folder-journals.ts";

/** A run's folder while this process has its lock: starts writes, and waits for them before the lock is released. */
export class LockedFolder implements AsyncDisposable {
  /** The folder's absolute path. It stays valid when an environment changes the working directory. */
  readonly dir: string;
  readonly files: Files;
  readonly #lock: RunLock;
  /** Writes in progress, apart from lines that are appended to a journal. */
  readonly #pending = new Set<Promise<unknown>>();
  readonly #opened: AsyncDisposable[] = [];
  #isClosing = false;

  constructor(dir: string, { files, lock }: { readonly files: Files; readonly lock: RunLock }) {
    this.dir = dir;
    this.files = files;
    this.#lock = lock;
  }

  /** Returns the absolute path of one of the folder's files. */
  pathOf(name: string): string {
    return path.join(this.dir, name);
  }

  /**
   * Checks the lock and runs `work`. The folder is not released before `work` has ended.
   *
   * @throws UsageError if the folder was closed, or another process has taken it over.
   */
  async whileLocked<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isClosing) throw closedEarly(this.dir);
    const working = this.#lock.confirm().then(work);
    this.#pending.add(working);
    try {
      return await working;
    } finally {
      this.#pending.delete(working);
    }
  }

  /**
   * Opens a journal and passes it to `toClosable`. The result is closed together with the folder.
   *
   * @throws UsageError if the file cannot be opened, or the folder was closed.
   */
  async openJournal<Closable extends AsyncDisposable>(
    name: FolderJournal,
    toClosable: (journal: JsonlJournal) => Closable,
  ): Promise<Closable> {
    return await this.open(async (guard) => {
      const options = { files: this.files, guard };
      return toClosable(await JsonlJournal.open(this.pathOf(name), options));
    });
  }

  /**
   * Opens files of the folder. The result is closed together with the folder.
   *
   * @param work - `guard` checks the lock, and is called before each write.
   * @throws UsageError if the folder was closed, or another process has taken it over.
   */
  async open<Closable extends AsyncDisposable>(
    work: (guard: () => Promise<void>) => Promise<Closable>,
  ): Promise<Closable> {
    return await this.whileLocked(async () => {
      const closable = await work(() => this.#lock.confirm());
      this.#opened.push(closable);
      return closable;
    });
  }

  /**
   * Refuses further writes, waits for those in progress, and closes the files that `openJournal()` and `open()` opened.
   */
  async endWrites(): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled(this.#pending);
    for (const opened of this.#opened) await opened[Symbol.asyncDispose]();
  }

  /** Releases the lock. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock[Symbol.asyncDispose]();
  }
}
