import { isPlain, isSealed, refuseWrite, seal } from "./sealed.ts";

/** A part of an episode's state: what all share, and the episode's own copy once it was written. */
export interface Part {
  readonly base: object;
  own: object | undefined;
  /** Where it was found; what it becomes is put there. */
  readonly holder: Part | undefined;
  readonly key: unknown;
  /** What a tool is given in its place. */
  view: object;
  /** The parts that were found in it. */
  readonly held: Map<unknown, Part>;
}

/**
 * An episode's view of a state that others share. A part is copied when it is first written, once in
 * an episode, with those that hold it; writes are remembered, so that those of a call can be taken back.
 */
export class StateDraft {
  /** Whether writes are taken: while a call lasts. */
  isOpen = false;
  readonly #byOwn = new WeakMap<object, Part>();
  readonly #byView = new WeakMap<object, Part>();
  readonly #makeView: (part: Part, draft: StateDraft) => object;
  readonly #root: Part;
  /** How to take back what was written since `begin()`, latest last. */
  #undo: (() => void)[] = [];
  /** What a call brought into the state that was not there before. */
  #added: object[] = [];

  constructor(base: object, makeView: (part: Part, draft: StateDraft) => object) {
    this.#makeView = makeView;
    this.#root = this.#find(base, undefined, undefined);
  }

  get view(): object {
    return this.#root.view;
  }

  /** The state as it is, without views. */
  get raw(): object {
    return rawOf(this.#root);
  }

  begin(): void {
    this.#undo = [];
    this.#added = [];
    this.isOpen = true;
  }

  /** Ends a call: what it changed stays, or is taken back. */
  end(isKept: boolean): void {
    this.isOpen = false;
    if (!isKept) for (const undo of this.#undo.toReversed()) undo();
    // From here on nobody outside may change what is in the state, and a later call copies it.
    else {
      const unwrap = (held: unknown): unknown => this.unwrap(held);
      const skip = (held: object): boolean => this.#byOwn.has(held);
      for (const one of this.#added) seal(one, { unwrap, skip });
    }
  }

  /** A held value as a tool is given it. */
  show(value: unknown, holder: Part, key: unknown): unknown {
    if (!isPlain(value) || this.#byView.has(value)) return value;
    const own = this.#byOwn.get(value);
    if (own !== undefined) return own.view;
    const known = holder.held.get(key);
    // One that was copied and is not found here as its copy was taken out: this is another one.
    if (known?.base === value && known.own === undefined) return known.view;
    const part = this.#find(value, holder, key);
    holder.held.set(key, part);
    return part.view;
  }

  /** A value as it is kept, of one that a tool wrote. */
  unwrap(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    const part = this.#byView.get(value);
    // It may be moved and then written: the episode's own copy is the same one wherever it is.
    if (part !== undefined) return this.own(part);
    return value;
  }

  /** Takes note of a write: `undo` takes it back, `added` is what it brought. */
  note(undo: () => void, added?: unknown): void {
    this.#undo.push(undo);
    if (isPlain(added) && !isSealed(added)) this.#added.push(added);
  }

  /** The episode's own copy of a part, made where there is none. */
  own(part: Part): object {
    if (part.own !== undefined) return part.own;
    const own = copyOf(part.base);
    part.own = own;
    this.#byOwn.set(own, part);
    const { holder, key } = part;
    // It may have been taken out of where it was found.
    if (holder !== undefined && memberOf(rawOf(holder), key) === part.base) {
      putMember(this.own(holder), key, own);
    }
    return own;
  }

  /** @throws TypeError where nobody may write. */
  assertOpen(): void {
    if (!this.isOpen) refuseWrite();
  }

  #find(base: object, holder: Part | undefined, key: unknown): Part {
    const part: Part = { base, own: undefined, holder, key, view: base, held: new Map() };
    if (!isSealed(base)) {
      part.own = base;
      this.#byOwn.set(base, part);
    }
    part.view = this.#makeView(part, this);
    this.#byView.set(part.view, part);
    return part;
  }
}

/** A part as it is. */
export function rawOf({ base, own }: Part): object {
  return own ?? base;
}

function copyOf(base: object): object {
  if (Array.isArray(base)) return base.slice();
  if (base instanceof Map) return new Map(base);
  if (base instanceof Set) return new Set(base);
  return Object.assign(Object.create(Object.getPrototypeOf(base) as object | null) as object, base);
}

function memberOf(raw: object, key: unknown): unknown {
  return raw instanceof Map ? raw.get(key) : (raw as Record<PropertyKey, unknown>)[key as string];
}

function putMember(raw: object, key: unknown, value: unknown): void {
  if (raw instanceof Map) raw.set(key, value);
  else (raw as Record<PropertyKey, unknown>)[key as string] = value;
}
