import { appendToList } from "../../packages/python-values/src/support/append-to-list.ts";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { systemClock, type Clock } from "../async/clock.ts";
import { encodeLine, type EncodedLine } from "../run/disk/encode-line.ts";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { writeAtomically } from "../run/disk/write-atomically.ts";
import type { GroupEntry, ServiceEntry, ServiceJournal } from "./service-journal.ts";

/** Bytes of a group that are in memory at once for each reader. */
const blockSize = 256 * 1024;

/**
 * The finished groups, a file each, as the lines that readers are sent. A group has its cursor for good
 * once its entry is in the journal; a file without an entry is what a crash left, and is replaced.
 */
export class GroupStore {
  readonly #dir: string;
  readonly #files: Files;
  readonly #journal: ServiceJournal;
  readonly #entries: GroupEntry[] = [];
  readonly #ofBatch = new Map<string, GroupEntry[]>();
  readonly #waiting = new Set<() => void>();
  /** Up to which all groups are forgotten. */
  #acknowledged = 0;
  /** Up to which those of a batch are. */
  readonly #acknowledgedOf = new Map<string, number>();
  #forgottenCount = 0;
  /** Cursors follow each other in the journal, so groups are added one by one. */
  #adding: Promise<unknown> = Promise.resolve();

  constructor(
    dir: string,
    { journal, files = diskFiles }: { readonly journal: ServiceJournal; readonly files?: Files },
  ) {
    this.#dir = dir;
    this.#journal = journal;
    this.#files = files;
  }

  /** The cursor up to which groups were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** The cursor up to which no group of a batch can be read any more; without a batch, none of any. */
  acknowledgedUpTo(batch?: string): number {
    const own = batch === undefined ? undefined : this.#acknowledgedOf.get(batch);
    return Math.max(this.#acknowledged, own ?? 0);
  }

  /** Groups that were not acknowledged. */
  get unreadCount(): number {
    return this.#entries.length - this.#forgottenCount;
  }

  /** The cursor of the newest group. */
  get lastCursor(): number {
    return this.#entries.length;
  }

  /** Takes up what the journal says of earlier starts, in its order. */
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

  /** Removes acknowledged files and the leftovers of crashes. */
  async tidy(): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const cursor = Number(/^(\d+)\.json$/.exec(name)?.[1] ?? Number.NaN);
      const entry = this.#entries[cursor - 1];
      if (entry === undefined || this.isForgotten(entry))
        await this.#files.remove(path.join(this.#dir, name));
    }
  }

  /** Stores a group; resolves with its entry once it cannot be lost any more. */
  async add(
    { batch, groupIndex }: Pick<GroupEntry, "batch" | "groupIndex">,
    group: object,
  ): Promise<void> {
    const added = this.#adding.then(async () => {
      const cursor = this.lastCursor + 1;
      const line = await encodeLine({ type: "group", cursor, group });
      await writeAtomically(this.#fileOf(cursor), blocksOf(line), { files: this.#files });
      const entry: GroupEntry = { type: "group", cursor, batch, groupIndex };
      await this.#journal.append(entry);
      this.#note(entry);
      this.wake();
    });
    this.#adding = added.catch(() => {});
    await added;
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

  /** The line of a group, line feed included, in pieces; only one is in memory at a time. */
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
    // A trainer that starts again acknowledges all of its batches. Most of them have nothing left
    // to forget.
    if (batch !== undefined && this.#upTo(cursor, batch).every((one) => this.isForgotten(one)))
      return;
    const about = batch === undefined ? {} : { batch };
    await this.#journal.append({ type: "acknowledged", cursor, ...about });
    for (const each of this.#forget(cursor, batch)) await this.#files.remove(this.#fileOf(each));
  }

  /** The cursors of the groups that are forgotten now and were not before. */
  #forget(cursor: number, batch: string | undefined): readonly number[] {
    // Two may acknowledge at once: the later one wins, whichever the journal has first.
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

  /** Lets all who wait look again. */
  wake(): void {
    for (const wake of Array.from(this.#waiting)) wake();
  }

  /** Waits until there is something new or the time is over, which is false. */
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
