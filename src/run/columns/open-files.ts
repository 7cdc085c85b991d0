import type { OpenFile } from "../disk/files.ts";

/** An open file, with the number of its users. */
interface Entry {
  readonly file: Promise<OpenFile>;
  userCount: number;
  /** True if the file is closed when its last user has left. */
  isLeft: boolean;
}

/** Files that stay open between reads, a limited number of them. A file in use is not closed. */
export class OpenFiles {
  readonly #open: (name: string) => Promise<OpenFile>;
  readonly #most: number;
  /** The files, in the order in which they were opened. */
  readonly #entries = new Map<string, Entry>();

  /**
   * @param open - Opens the file with a name.
   * @param most - Maximum number of files that stay open while nothing uses them.
   */
  constructor(open: (name: string) => Promise<OpenFile>, most: number) {
    this.#open = open;
    this.#most = most;
  }

  /**
   * Runs `work` with a file, which it opens if it is not open.
   *
   * @throws errors of the system and of `work`.
   */
  async use<Result>(name: string, work: (file: OpenFile) => Promise<Result>): Promise<Result> {
    const entry = this.#entries.get(name) ?? this.#enter(name);
    entry.userCount += 1;
    try {
      return await work(await entry.file);
    } finally {
      entry.userCount -= 1;
      if (entry.isLeft) await this.#leave(name, entry);
      else await this.#makeRoom();
    }
  }

  #enter(name: string): Entry {
    const entry: Entry = { file: this.#open(name), userCount: 0, isLeft: false };
    this.#entries.set(name, entry);
    // The next call opens it again.
    entry.file.catch(() => (entry.isLeft = true));
    return entry;
  }

  /** Closes the files that were opened first, except for those in use. */
  async #makeRoom(): Promise<void> {
    for (const [name, entry] of this.#entries) {
      if (this.#entries.size <= this.#most) return;
      if (entry.userCount === 0) await this.#leave(name, entry);
    }
  }

  /** Closes a file, now or when its last user has left. */
  async #leave(name: string, entry: Entry): Promise<void> {
    entry.isLeft = true;
    if (this.#entries.get(name) === entry) this.#entries.delete(name);
    if (entry.userCount > 0) return;
    const file = await entry.file.catch(() => undefined);
    await file?.close();
  }

  /** Closes the file with a name, if it is open. */
  async forget(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry !== undefined) await this.#leave(name, entry);
  }

  /** Closes all files. */
  async close(): Promise<void> {
    for (const name of Array.from(this.#entries.keys())) await this.forget(name);
  }
}
