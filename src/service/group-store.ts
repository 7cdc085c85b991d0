import { appendToList } from "../../packages/python-values/src/support/append-to-list.ts";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { systemClock, type Clock } from "../async/clock.ts";
import { encodeLine, type EncodedLine } from "../run/disk/encode-line.ts";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { writeAtomically } from "../run/disk/write-atomically.ts";
import type { GroupEntry, ServiceEntry, ServiceJournal } from "./service-journal.ts";

/** Block size in bytes. A reader has one block of a group in memory. */
const blockSize = 256 * 1024;

/**
 * The finished groups, each in a file with the line that readers get. A group's cursor is final
 * once its entry is in the journal. A file without an entry is left over from a crash and is
 * replaced.
 */
export class GroupStore {
  readonly #dir: string;
  readonly #files: Files;
  readonly #journal: ServiceJournal;
  readonly #entries: GroupEntry[] = [];
  readonly #ofBatch = new Map<string, GroupEntry[]>();
  readonly #waiting = new Set<() => void>();
  /** All groups up to this cursor are forgotten. */
  #acknowledged = 0;
  /** The cursors up to which single batches' groups are forgotten, by batch id. */
  readonly #acknowledgedOf = new Map<string, number>();
  #forgottenCount = 0;
  /**
   * Resolves when the last `add()` ends. Groups are added one by one, because cursors are
   * consecutive in the journal.
   */
  #adding: Promise<unknown> = Promise.resolve();

  constructor(
    dir: string,
    { journal, files = diskFiles }: { readonly journal: ServiceJournal; readonly files?: Files },
  ) {
    this.#dir = dir;
    this.#journal = journal;
    this.#files = files;
  }

  /** The cursor up to which all groups were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /**
   * Returns the cursor up to which a batch's groups were acknowledged; without a batch, the cursor up to which the
   * groups of all batches were acknowledged.
   */
  acknowledgedUpTo(batch?: string): number {
    const own = batch === undefined ? undefined : this.#acknowledgedOf.get(batch);
    return Math.max(this.#acknowledged, own ?? 0);
  }

  /** The number of groups that were not acknowledged. */
  get unreadCount(): number {
    return this.#entries.length - this.#forgottenCount;
  }

  /** The cursor of the newest group. */
  get lastCursor(): number {
    return this.#entries.length;
  }

  /** Restores the groups and acknowledgements of earlier starts from the journal. */
  restoreAll(entries: readonly ServiceEntry[]): void {
    for (const entry of entries) {
      if (entry.type === "group") this.#note(entry);
      else if (entry.type === "acknowledged") this.#forget(entry.cursor, entry.batch);
    }
  }

  #note(entry: GroupEntry): void {
    this.#entries.push(entry);
    appendToList(this.#ofBatch, entry.batch, entry);
  }

  /** True if a group was acknowledged and can no longer be read. */
  isForgotten({ cursor, batch }: GroupEntry): boolean {
    return cursor <= this.acknowledgedUpTo(batch);
  }

  /** True if all groups of a batch so far were acknowledged. */
  isAllForgotten(batch: string): boolean {
    const last = this.#ofBatch.get(batch)?.at(-1);
    return last === undefined || this.isForgotten(last);
  }

  /** Removes the files of acknowledged groups, and files that a crash left over. */
  async tidy(): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const cursor = Number(/^(\d+)\.json$/.exec(name)?.[1] ?? Number.NaN);
      const entry = this.#entries[cursor - 1];
      if (entry === undefined || this.isForgotten(entry))
        await this.#files.remove(path.join(this.#dir, name));
    }
  }

  /** Stores a group. Resolves with its entry when its file and its entry are on the disk. */
  async add(
    { batch, groupIndex }: Pick<GroupEntry, "batch" | "groupIndex">,
    group: object,
  ): Promise<GroupEntry> {
    const added = this.#adding.then(async () => {
      const cursor = this.lastCursor + 1;
      const line = await encodeLine({ type: "group", cursor, group });
      await writeAtomically(this.#fileOf(cursor), blocksOf(line), { files: this.#files });
      const entry: GroupEntry = { type: "group", cursor, batch, groupIndex };
      await this.#journal.append(entry);
      this.#note(entry);
      this.wake();
      return entry;
    });
    this.#adding = added.catch(() => {});
    return await added;
  }

  /** Returns the first group after a cursor, of all batches or of one. */
  next(cursor: number, batch?: string): GroupEntry | undefined {
    if (batch === undefined) return this.#entries[cursor];
    const entries = this.#ofBatch.get(batch) ?? [];
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (entries[middle]!.cursor > cursor) high = middle;
      else low = middle + 1;
    }
    return entries[low];
  }

  /** Reads the line of a group in blocks, including its line feed. */
  async *read({ cursor }: GroupEntry): AsyncGenerator<Uint8Array> {
    const file = await this.#files.open(this.#fileOf(cursor), "read");
    try {
      for (let position = 0; ;) {
        const block = Buffer.allocUnsafe(blockSize);
        const length = await file.read(block, position);
        if (length === 0) return;
        yield block.subarray(0, length);
        position += length;
      }
    } finally {
      await file.close();
    }
  }

  /**
   * Forgets the groups up to a cursor, of all batches or of one. A smaller cursor than before
   * changes nothing.
   */
  async acknowledge(cursor: number, batch?: string): Promise<void> {
    const before = batch === undefined ? this.#acknowledged : this.#acknowledgedOf.get(batch);
    if (cursor <= (before ?? 0)) return;
    // A restarted trainer acknowledges all of its batches. Most of them have no groups left.
    if (batch !== undefined && this.#upTo(cursor, batch).every((one) => this.isForgotten(one)))
      return;
    const about = batch === undefined ? {} : { batch };
    await this.#journal.append({ type: "acknowledged", cursor, ...about });
    for (const each of this.#forget(cursor, batch)) await this.#files.remove(this.#fileOf(each));
  }

  /** Marks groups as forgotten. Returns the cursors of those that were not forgotten before. */
  #forget(cursor: number, batch: string | undefined): readonly number[] {
    // Two readers may acknowledge at once. The higher cursor counts, in any order of the journal.
    const before =
      batch === undefined ? this.#acknowledged : (this.#acknowledgedOf.get(batch) ?? 0);
    if (cursor <= before) return [];
    const entries =
      batch === undefined ? this.#entries.slice(before, cursor) : this.#upTo(cursor, batch);
    const forgotten = entries.filter((entry) => !this.isForgotten(entry)).map((one) => one.cursor);
    if (batch === undefined) this.#acknowledged = cursor;
    else this.#acknowledgedOf.set(batch, cursor);
    this.#forgottenCount += forgotten.length;
    return forgotten;
  }

  #upTo(cursor: number, batch: string): readonly GroupEntry[] {
    return (this.#ofBatch.get(batch) ?? []).filter((entry) => entry.cursor <= cursor);
  }

  /** Ends all waits in `changed()`. */
  wake(): void {
    for (const wake of Array.from(this.#waiting)) wake();
  }

  /**
   * Waits for a new group or another change. Resolves with false after `ms` milliseconds without
   * one.
   */
  async changed(
    ms: number,
    { signal, clock = systemClock }: { readonly signal: AbortSignal; readonly clock?: Clock },
  ): Promise<boolean> {
    if (signal.aborted) return true;
    return await new Promise((resolve) => {
      const end = (hasChanged: boolean): void => {
        callOff();
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve(hasChanged);
      };
      const wake = (): void => end(true);
      const callOff = clock.after(ms, () => end(false));
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  #fileOf(cursor: number): string {
    return path.join(this.#dir, `${cursor}.json`);
  }
}

async function* blocksOf({ blocks }: EncodedLine): AsyncGenerator<Uint8Array> {
  yield* blocks;
}
