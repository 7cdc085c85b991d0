import { assertKey } from "./map-key.ts";
import { rawOf, type Part, type StateDraft } from "./state-draft.ts";

/** The view of a Map that a tool gets. */
export class MapView extends Map<unknown, unknown> {
  readonly #part: Part;
  readonly #draft: StateDraft;

  constructor(part: Part, draft: StateDraft) {
    super();
    this.#part = part;
    this.#draft = draft;
  }

  get #raw(): Map<unknown, unknown> {
    return rawOf(this.#part) as Map<unknown, unknown>;
  }

  #own(): Map<unknown, unknown> {
    this.#draft.assertOpen();
    return this.#draft.own(this.#part) as Map<unknown, unknown>;
  }

  override get size(): number {
    return this.#raw.size;
  }

  override has(key: unknown): boolean {
    return this.#raw.has(key) || this.#misses(key);
  }

  /**
   * Refuses a view of the state as a key, because the Map cannot contain the view itself. Returns
   * false for other keys.
   */
  #misses(key: unknown): false {
    if (this.#draft.isView(key)) assertKey(key, true);
    return false;
  }

  override get(key: unknown): unknown {
    const value = this.#raw.get(key);
    if (value !== undefined) return this.#draft.show(value, this.#part, key);
    this.#misses(key);
    return undefined;
  }

  override set(key: unknown, value: unknown): this {
    const own = this.#own();
    const kept = this.#draft.unwrap(value);
    const place = { raw: own, key };
    if (own.has(key)) {
      const before = own.get(key);
      this.#draft.note(() => own.set(key, before), kept, place);
    } else {
      assertKey(key, this.#draft.isView(key));
      this.#draft.note(() => own.delete(key), kept, place);
    }
    own.set(key, kept);
    return this;
  }

  /** Newer Map methods read a Map's internal entries, which a view does not have. */
  getOrInsert(key: unknown, value: unknown): unknown {
    return this.has(key) ? this.get(key) : this.set(key, value).get(key);
  }

  getOrInsertComputed(key: unknown, compute: (key: unknown) => unknown): unknown {
    return this.has(key) ? this.get(key) : this.set(key, compute(key)).get(key);
  }

  override delete(key: unknown): boolean {
    if (!this.has(key)) return false;
    const own = this.#own();
    this.#draft.noteRemoval(own, () => refill(own));
    return own.delete(key);
  }

  override clear(): void {
    const own = this.#own();
    this.#draft.noteRemoval(own, () => refill(own));
    own.clear();
  }

  override forEach(
    callback: (value: unknown, key: unknown, map: Map<unknown, unknown>) => void,
  ): void {
    for (const [key, value] of this) callback(value, key, this);
  }

  override keys(): MapIterator<unknown> {
    return this.#draft.walk(this.#part, (raw) => (raw as Map<unknown, unknown>).keys());
  }

  override *values(): MapIterator<unknown> {
    for (const [, value] of this) yield value;
  }

  override *entries(): MapIterator<[unknown, unknown]> {
    const entriesOf = (raw: object) => (raw as Map<unknown, unknown>).entries();
    for (const [key, value] of this.#draft.walk(this.#part, entriesOf)) {
      yield [key, this.#draft.show(value, this.#part, key)];
    }
  }

  override [Symbol.iterator](): MapIterator<[unknown, unknown]> {
    return this.entries();
  }
}

function refill(own: Map<unknown, unknown>): () => void {
  const keys = [...own.keys()];
  const values = [...own.values()];
  return () => {
    own.clear();
    for (const [place, key] of keys.entries()) own.set(key, values[place]);
  };
}

/** The view of a Set that a tool gets. Members that other episodes share are passed as they are, read-only. */
export class SetView extends Set<unknown> {
  readonly #part: Part;
  readonly #draft: StateDraft;

  constructor(part: Part, draft: StateDraft) {
    super();
    this.#part = part;
    this.#draft = draft;
  }

  get #raw(): Set<unknown> {
    return rawOf(this.#part) as Set<unknown>;
  }

  #own(): Set<unknown> {
    this.#draft.assertOpen();
    return this.#draft.own(this.#part) as Set<unknown>;
  }

  #ownToEmpty(): Set<unknown> {
    const own = this.#own();
    this.#draft.noteRemoval(own, () => {
      const before = [...own];
      return () => {
        own.clear();
        for (const one of before) own.add(one);
      };
    });
    return own;
  }

  override get size(): number {
    return this.#raw.size;
  }

  override has(value: unknown): boolean {
    const raw = this.#raw;
    return this.#draft.formsOf(value).some((form) => raw.has(form));
  }

  override add(value: unknown): this {
    if (this.has(value)) return this;
    const own = this.#own();
    const kept = this.#draft.unwrapMember(value);
    this.#draft.noteMember(own, kept);
    own.add(kept);
    return this;
  }

  override delete(value: unknown): boolean {
    if (!this.has(value)) return false;
    const own = this.#ownToEmpty();
    for (const form of this.#draft.formsOf(value)) own.delete(form);
    return true;
  }

  override clear(): void {
    this.#ownToEmpty().clear();
  }

  override forEach(callback: (value: unknown, again: unknown, set: Set<unknown>) => void): void {
    for (const value of this) callback(value, value, this);
  }

  override keys(): SetIterator<unknown> {
    return this.values();
  }

  override *values(): SetIterator<unknown> {
    const valuesOf = (raw: object) => (raw as Set<unknown>).values();
    for (const value of this.#draft.walk(this.#part, valuesOf)) yield this.#draft.showInSet(value);
  }

  override *entries(): SetIterator<[unknown, unknown]> {
    for (const value of this) yield [value, value];
  }

  override [Symbol.iterator](): SetIterator<unknown> {
    return this.values();
  }
}

// The view's constructor must be the plain class: libraries copy a collection by its constructor.
for (const [View, Plain] of [
  [MapView, Map],
  [SetView, Set],
] as const) {
  Object.defineProperty(View.prototype, "constructor", { value: Plain });
}

/** Newer Set methods read a Set's internal members, which a view does not have. */
const comparisons = [
  "union",
  "intersection",
  "difference",
  "symmetricDifference",
  "isSubsetOf",
  "isSupersetOf",
  "isDisjointFrom",
];
for (const name of comparisons) {
  const compare = (Set.prototype as unknown as Record<string, unknown>)[name];
  if (typeof compare !== "function") continue;
  const value = function (this: SetView, other: unknown): unknown {
    return Reflect.apply(compare, new Set(this), [other]);
  };
  Object.defineProperty(SetView.prototype, name, { value, configurable: true, writable: true });
}
