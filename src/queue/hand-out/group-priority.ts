/** The priority of attempts in groups that are nearly complete. Workers take them first. */
export const nearlyDonePriority = 1;

/** The priority of all other attempts. Workers take them in the order of the hand-out. */
const ordinaryPriority = 2;

interface KnownGroup {
  /**
   * The number of unfinished attempts when the group's first job was added. As a rule, this is the
   * group's size.
   */
  readonly size: number;
  left: number;
  /** Jobs that no worker is known to have started. */
  readonly waiting: Set<string>;
  isNearlyDone: boolean;
}

/**
 * Tracks the number of unfinished attempts of each group, so that nearly complete groups are played
 * first.
 */
export class GroupPriorities {
  readonly #groups = new Map<string, KnownGroup>();

  /** The number of groups with a priority. */
  get size(): number {
    return this.#groups.size;
  }

  /**
   * Adds a job of a group and returns its priority. `left` is the number of the group's unfinished
   * attempts, including this one.
   */
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
   * Records that an attempt of the group has ended or is not needed any more.
   *
   * @returns the jobs whose priority must rise to `nearlyDonePriority`, because the group is now
   *   nearly complete.
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

/**
 * True if one attempt or a quarter of the group is left. Always false for a group of one attempt;
 * otherwise every such group would have priority.
 */
function isNear({ size, left }: KnownGroup): boolean {
  return size > 1 && left <= Math.max(1, Math.floor(size / 4));
}
