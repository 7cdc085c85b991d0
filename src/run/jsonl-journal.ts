import { open, type FileHandle } from "node:fs/promises";
import { UsageError } from "../errors.ts";
import type { Resolvers } from "../internal/with-resolvers.ts";
import { withResolvers } from "../internal/with-resolvers.ts";

/**
 * An append-only file of JSON lines. Lines that are handed in while a write is under way are written
 * and synced together (one `fdatasync` for all of them), so that many episodes ending at once cost
 * one sync, and a line whose promise has resolved survives a crash of the machine.
 */
export class JsonlJournal implements AsyncDisposable {
  readonly path: string;
  readonly #file: FileHandle;
  #waiting: { readonly text: string; readonly settle: Resolvers<void> }[] = [];
  #flushing: Promise<void> | undefined;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /**
   * Opens the file for appending, creating it where it is absent. A torn last line, left by a crash
   * in the middle of a write, is cut off.
   *
   * @throws UsageError where the file cannot be opened.
   */
  static async open(path: string): Promise<JsonlJournal> {
    try {
      const file = await open(path, "a+");
      await cutTornLine(file);
      return new JsonlJournal(path, file);
    } catch (error) {
      throw new UsageError(`Cannot open ${path} for writing`, { cause: error });
    }
  }

  /** Appends one line; resolves once it is on the disk. */
  async append(value: unknown): Promise<void> {
    await this.appendText(`${JSON.stringify(value)}\n`);
  }

  /** Appends ready-made lines, each ending in a line feed; resolves once they are on the disk. */
  async appendText(text: string): Promise<void> {
    const settle = withResolvers();
    this.#waiting.push({ text, settle });
    this.#flushing ??= this.#flush();
    await settle.promise;
  }

  async #flush(): Promise<void> {
    // One tick, so that episodes which end together share a sync.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#file.appendFile(batch.map(({ text }) => text).join(""));
        await this.#file.datasync();
        for (const { settle } of batch) settle.resolve();
      } catch (error) {
        for (const { settle } of batch) settle.reject(error);
      }
    }
    this.#flushing = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#flushing;
    await this.#file.close();
  }
}

async function cutTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  const lineFeed = 0x0a;
  const block = Buffer.alloc(64 * 1024);
  let end = size;
  while (end > 0) {
    const start = Math.max(0, end - block.length);
    const { bytesRead } = await file.read(block, 0, end - start, start);
    const last = block.subarray(0, bytesRead).lastIndexOf(lineFeed);
    if (last >= 0) {
      const keep = start + last + 1;
      if (keep < size) await file.truncate(keep);
      return;
    }
    end = start;
  }
  if (size > 0) await file.truncate(0);
}
