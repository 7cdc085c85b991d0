/** Attempts of groups that are nearly done go first. */
export const nearlyDonePriority = 1;

/** All others, in the order in which they are handed out. */
const ordinaryPriority = 2;

interface KnownGroup {
  /** Attempts that were left when it was first heard of: its size, as a rule. */
  readonly size: number;
  left: number;
  /** Jobs that no worker has started, as far as is known. */
  readonly waiting: Set<string>;
  isNearlyDone: boolean;
}

/** Keeps in mind how many attempts groups lack, so that those that lack few are not left waiting. */
export class GroupPriorities {
  readonly #groups = new Map<string, KnownGroup>();

  /** The number of groups with a priority. */
  get size(): number {
    return this.#groups.size;
  }

  /** A job of a group that lacks `left` attempts, this one included; returns its priority. */
  add(group: string, { id, left }: { readonly id: string; readonly left: number }): number {
    const known = this.#groups.get(group) ?? {
      size: left,
      left,
      isNearlyDone: false,
      waiting: new Set<string>(),
    };
    this.#groups.set(group, known);
    known.left = left;
    known.waiting.add(id);
    known.isNearlyDone ||= isNear(known);
    return known.isNearlyDone ? nearlyDonePriority : ordinaryPriority;
  }

  /** Records that a worker started a job. */
  begun(group: string, id: string): void {
    this.#groups.get(group)?.waiting.delete(id);
  }

  /**
   * An attempt of the group has ended, or is not needed any more.
   *
   * @returns the jobs that are more urgent by that.
   */
  ended(group: string, id: string): readonly string[] {
    const known = this.#groups.get(group);
    if (known === undefined) return [];
    known.waiting.delete(id);
    known.left -= 1;
    if (known.left <= 0) {
      this.#groups.delete(group);
      return [];
    }
    if (known.isNearlyDone || !isNear(known)) return [];
    known.isNearlyDone = true;
    return [...known.waiting];
  }
}

/** A quarter of it is left, or one attempt. A group of one is never nearly done: all would be. */
function isNear({ size, left }: KnownGroup): boolean {
  return size > 1 && left <= Math.max(1, Math.floor(size / 4));
}
