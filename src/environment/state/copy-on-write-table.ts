/** Options of a table. */
export interface CopyOnWriteTableOptions<Frozen, Owned extends Frozen> {
  /** The records that every episode shares. Never changed. */
  readonly base: ReadonlyMap<string, Frozen>;
  /** Makes an episode's own copy of a shared record. */
  readonly copy: (record: Frozen) => Owned;
}

/**
 * One episode's view of a table of records that all episodes share. Opening it copies no record; a record is copied
 * at its first write, and other episodes keep seeing the base. `Frozen` is the type of a record for reading,
 * `Owned` for writing.
 */
export class CopyOnWriteTable<Frozen, Owned extends Frozen = Frozen> {
  readonly #options: CopyOnWriteTableOptions<Frozen, Owned>;
  /** The episode's own records by id; `null` for a deleted record. `undefined` until the first write. */
  #changes: Map<string, Owned | null> | undefined;

  constructor(options: CopyOnWriteTableOptions<Frozen, Owned>) {
    this.#options = options;
  }

  has(id: string): boolean {
    const own = this.#changes?.get(id);
    return own === undefined ? this.#options.base.has(id) : own !== null;
  }

  /** Returns the record for reading, or `undefined`. */
  get(id: string): Frozen | undefined {
    const own = this.#changes?.get(id);
    return own === undefined ? this.#options.base.get(id) : (own ?? undefined);
  }

  /** Returns the record for writing, or `undefined`. The first call copies it from the base. */
  own(id: string): Owned | undefined {
    const own = this.#changes?.get(id);
    if (own !== undefined) return own ?? undefined;
    const shared = this.#options.base.get(id);
    if (shared === undefined) return undefined;
    const copy = this.#options.copy(shared);
    this.set(id, copy);
    return copy;
  }

  /** Adds or replaces a record, which then belongs to this table. */
  set(id: string, record: Owned): void {
    this.#changes ??= new Map();
    this.#changes.set(id, record);
  }

  /** Deletes a record; returns true if it existed. */
  delete(id: string): boolean {
    if (!this.has(id)) return false;
    this.#changes ??= new Map();
    if (this.#options.base.has(id)) this.#changes.set(id, null);
    else this.#changes.delete(id);
    return true;
  }

  /** All records for reading: the base in its order, then added records in the order of adding. */
  *entries(): Generator<readonly [id: string, record: Frozen]> {
    for (const [id, shared] of this.#options.base) {
      const own = this.#changes?.get(id);
      if (own !== null) yield [id, own ?? shared];
    }
    for (const [id, own] of this.#changes ?? []) {
      if (own !== null && !this.#options.base.has(id)) yield [id, own];
    }
  }

  /** Records that may differ from the base: written records by id, `null` for deleted ones. */
  get changes(): ReadonlyMap<string, Owned | null> {
    return this.#changes ?? noChanges;
  }
}

const noChanges: ReadonlyMap<string, never> = new Map<string, never>();
