import type { RunFolder } from "../run/folder/run-folder.ts";
import type { GroupStore } from "./group-store.ts";
import type { GroupEntry } from "./service-journal.ts";

/** The files in which the parts of a group may lie, by their numbers. */
interface GroupSpan {
  readonly first: number;
  /** The number of the last file. `undefined` until the group is delivered. */
  last: number | undefined;
  entry: GroupEntry | undefined;
}

/**
 * Counts the groups of a batch that is played, for each file of side columns that this start writes. A group's parts lie
 * in the files that were open between its first attempt and its delivery. A full file is freed when all groups that may
 * have parts in it were acknowledged.
 */
export class BatchColumns {
  readonly #folder: Pick<RunFolder, "columns">;
  readonly #groups: Pick<GroupStore, "isForgotten">;
  /** The groups that were started and not acknowledged, by their index in the batch. */
  readonly #spans = new Map<number, GroupSpan>();
  readonly #freed = new Set<number>();

  constructor(folder: Pick<RunFolder, "columns">, groups: Pick<GroupStore, "isForgotten">) {
    this.#folder = folder;
    this.#groups = groups;
  }

  /** The number of the file that is being written. */
  get #current(): number {
    return Math.max(0, (this.#folder.columns?.fileCount ?? 0) - 1);
  }

  /** Records that a group may start. */
  started(groupIndex: number): void {
    if (this.#spans.has(groupIndex)) return;
    this.#spans.set(groupIndex, { first: this.#current, last: undefined, entry: undefined });
  }

  /**
   * Records that a group was delivered. A group without a start in this process has no parts in its files.
   *
   * @param entry - The entry of a group that was stored for readers. `taken` if a `Taker` has the group, which counts
   *   as acknowledged then.
   */
  delivered(groupIndex: number, entry: GroupEntry | "taken"): void {
    if (entry === "taken") this.#spans.delete(groupIndex);
    const span = this.#spans.get(groupIndex);
    if (span === undefined || entry === "taken") return;
    span.last = this.#current;
    span.entry = entry;
  }

  /** Frees the full files of acknowledged groups. Returns their names. */
  async free(): Promise<readonly string[]> {
    const { columns } = this.#folder;
    if (columns === undefined) return [];
    for (const [groupIndex, { entry }] of Array.from(this.#spans)) {
      if (entry !== undefined && this.#groups.isForgotten(entry)) this.#spans.delete(groupIndex);
    }
    const spans = [...this.#spans.values()];
    const names: string[] = [];
    for (let number = 0; number < this.#current; number++) {
      const isNeeded = spans.some(
        ({ first, last = Infinity }) => first <= number && number <= last,
      );
      if (isNeeded || this.#freed.has(number)) continue;
      this.#freed.add(number);
      names.push(await columns.free(number));
    }
    return names;
  }
}
