import { BinaryCopies, bufferOf, isBinary, type Binary } from "../binary.ts";
import { copyGraph, copyOf, memberOf, noteBinaries, putMember } from "./copy-graph.ts";
import { assertKey } from "./map-key.ts";
import { holdsBinary, isPlain, isSealed, isSealedWhole, refuseWrite, sealAlone } from "./sealed.ts";

/**
 * A part of an episode's state. `base` is the shared original. `own` is the episode's copy, once
 * the part is written.
 */
export interface Part {
  readonly base: object;
  own: object | undefined;
  /** The part that contains this part. A copy of this part is stored there. */
  readonly holder: Part | undefined;
  readonly key: unknown;
  /** The view that tools get. */
  view: object;
  /** The parts of this part that were read, by key. */
  readonly held: Map<unknown, Part>;
  /**
   * Functions that move running iterations into the copy. They are called when the part is copied.
   */
  walks?: Set<() => void> | undefined;
}

/** The place of a write. */
interface Place {
  readonly raw: object;
  readonly key: unknown;
}

/**
 * An episode's view of a state that several episodes share. A part, and the parts that contain it,
 * are copied at the part's first write. Writes are logged, so that a failed call can be undone.
 * Values that a call adds are copied when the call ends, so that no other code has references to
 * them. Writes to binary data cannot be observed. Binary data is therefore copied at the start, and
 * its content is saved when a call first reads it.
 */
export class StateDraft {
  /** True during a call, when writes are allowed. */
  isOpen = false;
  /** The size in bytes of the initial binary data. */
  readonly binaryLength: number;
  readonly #byOwn = new WeakMap<object, Part>();
  readonly #byView = new WeakMap<object, Part>();
  readonly #makeView: (part: Part, draft: StateDraft) => object;
  readonly #root: Part;
  /** Functions that undo the writes since `begin()`, the latest last. */
  #undo: (() => void)[] = [];
  /** The episode's own objects. */
  readonly #owned = new WeakSet();
  /** The positions at which the current call added values. */
  #added: Place[] = [];
  /**
   * The Sets to which the current call added members. The value has the first added member and all
   * members after it, in order.
   */
  #filledSets = new Map<Set<unknown>, Set<unknown>>();
  /** The values that the current call added, with the state's copies of them. */
  #copies = new Map<object, object>();
  /** The binary data in the added values. */
  #binaries = new BinaryCopies();
  /** The copies of objects that were added to Sets. A Set identifies a member by reference, also in later calls. */
  readonly #members = new WeakMap<object, object>();
  /** The parts that the current call iterates. */
  #walked: Part[] = [];
  /**
   * The objects from which the current call removed something. Each has one undo function, which
   * restores its complete content.
   */
  #emptied = new Set<object>();
  /** The buffers that the call read, with saved content. */
  #savedBuffers = new Set<ArrayBuffer>();

  /**
   * @param isShared - True for a part of `base` that several episodes share, which is copied when
   *   it is written. Other parts are copied now.
   */
  constructor(
    base: object,
    makeView: (part: Part, draft: StateDraft) => object,
    isShared: (part: object) => boolean,
  ) {
    this.#makeView = makeView;
    this.#root = this.#find(this.#take(base, isShared), undefined, undefined);
    this.binaryLength = this.#binaries.byteLength;
  }

  get view(): object {
    return this.#root.view;
  }

  /** The current state, without views. */
  get raw(): object {
    return rawOf(this.#root);
  }

  begin(): void {
    this.#undo = [];
    this.#added = [];
    this.#filledSets = new Map();
    this.#copies = new Map();
    this.#binaries = new BinaryCopies();
    this.#emptied = new Set();
    this.#savedBuffers = new Set();
    this.isOpen = true;
  }

  /**
   * Ends a call and keeps or undoes its changes.
   *
   * @throws TypeError if the call added a value that cannot be kept; then all changes are undone.
   */
  end(isKept: boolean): void {
    this.isOpen = false;
    for (const part of this.#walked) part.walks = undefined;
    this.#walked = [];
    if (!isKept) return this.#undoWrites();
    try {
      this.#keepAdded();
    } catch (error) {
      this.#undoWrites();
      throw error;
    }
  }

  #undoWrites(): void {
    for (const undo of this.#undo.toReversed()) undo();
  }

  /** Copies the added values, to which code outside of the state may still have references. */
  #keepAdded(): void {
    // A value outside of the state is copied with the object that contains it.
    const places = this.#added.filter(({ raw }) => this.#owned.has(raw));
    const members = [...this.#filledSets.values()].flatMap((added) => [...added]);
    noteBinaries([...places.map(({ raw, key }) => memberOf(raw, key)), ...members], this.#copying);
    for (const { raw, key } of places) {
      const held = memberOf(raw, key);
      const own = this.#copy(held);
      if (own !== held) putMember(raw, key, own);
    }
    for (const [set, added] of this.#filledSets) {
      if (!this.#owned.has(set)) continue;
      // The added members are the last ones of the Set. They are replaced by copies in the same
      // order.
      const still = [...added].filter((one) => set.delete(one));
      for (const one of still) set.add(this.#takeMember(one));
    }
    // The originals are frozen, because later writes to them would not reach the state.
    for (const one of this.#copies.keys()) sealAlone(one);
  }

  /**
   * Returns the episode's own copy of a value, or the value itself if the episode already owns it.
   * @param isShared - True for objects that stay shared and are not copied.
   */
  #take<Value>(value: Value, isShared = (_held: object) => false): Value {
    const isKept = (held: object) => this.#isOwned(held) || isShared(held);
    noteBinaries([value], { ...this.#copying, isKept });
    return this.#copy(value, isKept);
  }

  /** Does the same as `#take()`, for a value with binary data that is already registered. */
  #copy<Value>(value: Value, isKept = (held: object) => this.#isOwned(held)): Value {
    return copyGraph(value, {
      ...this.#copying,
      isKept,
      takeMember: this.#takeMember,
      onCopy: (held, copy) => {
        if (copy instanceof Map && !isSealed(held)) this.#assertKeys(copy);
        this.#owned.add(isBinary(copy) ? bufferOf(copy) : copy);
        const part = this.#byOwn.get(held);
        if (part === undefined) return;
        // A tool has a view of this part, so the part now refers to the copy.
        part.own = copy;
        this.#byOwn.delete(held);
        this.#byOwn.set(copy, part);
      },
    });
  }

  /** Refuses object keys in a Map that a call adds. */
  #assertKeys(map: ReadonlyMap<unknown, unknown>): void {
    for (const key of map.keys()) if (typeof key === "object") assertKey(key, this.isView(key));
  }

  get #copying() {
    return {
      copies: this.#copies,
      binaries: this.#binaries,
      read: (held: object) => this.#read(held) as object,
      isKept: (held: object) => this.#isOwned(held),
    };
  }

  /** True for an own object; binary data is own if its buffer is. */
  #isOwned(held: object): boolean {
    return this.#owned.has(isBinary(held) ? bufferOf(held) : held);
  }

  /**
   * Returns the value to store in a Set: shared members unchanged, because Sets only read them, and
   * any other object as a copy.
   */
  readonly #takeMember = (held: unknown): unknown => {
    if (!isPlain(held) && !isBinary(held)) return held;
    if (this.#isOwned(held) || (isSealedWhole(held) && !holdsBinary(held))) return held;
    const known = this.#members.get(held);
    if (known !== undefined) return known;
    const own = this.#take(held);
    if (own !== held && !this.#byView.has(held)) this.#members.set(held, own);
    return own;
  };

  /** Returns the object of a view. Returns any other value unchanged. */
  #read(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    const part = this.#byView.get(value);
    // A tool may store the part elsewhere and write it later. All places must refer to the same
    // copy.
    return part === undefined ? value : this.own(part);
  }

  /** True if the value is a view of a part. */
  isView(value: unknown): boolean {
    return typeof value === "object" && value !== null && this.#byView.has(value);
  }

  /** Returns the view of a value for tools. */
  show(value: unknown, holder: Part, key: unknown): unknown {
    if (isBinary(value)) return this.#showBinary(value);
    if (!isPlain(value) || this.#byView.has(value)) return value;
    const own = this.#byOwn.get(value);
    if (own !== undefined) return viewOf(own);
    const known = holder.held.get(key);
    // The part was removed if its copy is not found here any more. The value is then another part.
    if (known?.base === value && known.own === undefined) return known.view;
    const part = this.#find(value, holder, key);
    holder.held.set(key, part);
    return part.view;
  }

  /**
   * Returns binary data unchanged, because it has no view. Saves its content, so that the call's
   * writes can be undone.
   */
  #showBinary(value: Binary): Binary {
    const buffer = bufferOf(value);
    if (!this.isOpen || this.#savedBuffers.has(buffer) || !this.#owned.has(buffer)) return value;
    this.#savedBuffers.add(buffer);
    const before = new Uint8Array(buffer.slice(0));
    this.#undo.push(() => new Uint8Array(buffer).set(before));
    return value;
  }

  /**
   * Returns the view of a Set's member for tools. An object of the episode can be written; any
   * other member is read-only.
   */
  showInSet(value: unknown): unknown {
    if (isBinary(value)) return this.#showBinary(value);
    if (!isPlain(value) || !this.#owned.has(value)) return value;
    const part = this.#byOwn.get(value) ?? this.#find(value, undefined, undefined);
    return viewOf(part);
  }

  /** Returns the value to store in the state if a tool writes `value`. */
  unwrap(value: unknown): unknown {
    const held = this.#read(value);
    // A sealed value does not change during the call, so it can be copied now.
    return isPlain(held) && isSealed(held) ? this.#take(held) : held;
  }

  /** Returns the value to store if a tool adds `value` to a Set. */
  unwrapMember(value: unknown): unknown {
    const held = this.#read(value);
    return isPlain(held) && isSealed(held) ? this.#takeMember(held) : held;
  }

  /**
   * Returns the objects that a Set or a list may contain for a tool's value: the value itself, the
   * state's object, and the view. Copies nothing.
   */
  formsOf(value: unknown): readonly unknown[] {
    if (typeof value !== "object" || value === null) return [value];
    const held = this.#heldOf(value);
    const view = this.#byOwn.get(held)?.view;
    return [...new Set([value, held, view ?? held])];
  }

  /** Returns the state's own object for a value, or the value itself. */
  #heldOf(value: object): object {
    const part = this.#byView.get(value);
    return part === undefined
      ? (this.#copies.get(value) ?? this.#members.get(value) ?? value)
      : rawOf(part);
  }

  /** Logs a write: `undo` reverts it, and `added` is the value that it stored at `place`. */
  note(undo: () => void, added?: unknown, place?: Place): void {
    this.#undo.push(undo);
    if (place !== undefined && this.#isNew(added)) this.#added.push(place);
  }

  /** Logs that a new member is added to a Set. */
  noteMember(own: Set<unknown>, added: unknown): void {
    this.#undo.push(() => own.delete(added));
    const known = this.#filledSets.get(own);
    if (known === undefined) {
      if (this.#isNew(added)) this.#filledSets.set(own, new Set([added]));
      return;
    }
    known.delete(added);
    known.add(added);
  }

  #isNew(added: unknown): boolean {
    return (isPlain(added) || isBinary(added)) && !this.#isOwned(added);
  }

  /**
   * Logs that something is removed from `own` or that its members are reordered. Its complete content is saved once
   * a call, since that costs as much as the removal.
   *
   * @param undoLater - Saves the content and returns a function that restores it.
   */
  noteRemoval(own: object, undoLater: () => () => void): void {
    if (this.#emptied.has(own)) return;
    this.#emptied.add(own);
    this.#undo.push(undoLater());
  }

  /** Returns the episode's own copy of a part. The first call creates it. */
  own(part: Part): object {
    if (part.own !== undefined) return part.own;
    const own = copyOf(part.base);
    part.own = own;
    this.#owned.add(own);
    this.#byOwn.set(own, part);
    const { holder, key } = part;
    // The part may no longer be in its holder.
    if (holder !== undefined && memberOf(rawOf(holder), key) === part.base) {
      putMember(this.own(holder), key, own);
    }
    for (const continueInCopy of part.walks ?? []) continueInCopy();
    part.walks = undefined;
    return own;
  }

  /**
   * Iterates a Map or a Set that may change during the iteration. If it is copied in the meantime,
   * continues in the copy.
   *
   * @param entriesOf - Returns the iterator of a collection.
   */
  *walk<Entry>(
    part: Part,
    entriesOf: (raw: object) => Iterator<Entry>,
  ): Generator<Entry, undefined> {
    let rest = entriesOf(rawOf(part));
    let passedCount = 0;
    const continueInCopy = (): void => {
      rest = entriesOf(rawOf(part));
      for (let count = 0; count < passedCount; count++) rest.next();
    };
    if (this.isOpen && part.own === undefined) {
      if (part.walks === undefined) this.#walked.push(part);
      part.walks ??= new Set();
      part.walks.add(continueInCopy);
    }
    try {
      for (;;) {
        const next = rest.next();
        if (next.done === true) return undefined;
        passedCount += 1;
        yield next.value;
      }
    } finally {
      part.walks?.delete(continueInCopy);
    }
  }

  /**
   * Requires that a tool call is running, because only a call may write.
   *
   * @throws TypeError outside of a call.
   */
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

/**
 * Returns the view of a part. Also sets the time of a Date's view, for code that reads it without
 * the view's methods.
 */
function viewOf(part: Part): object {
  const raw = rawOf(part);
  // A Date that the current call added may also be written directly, without its view.
  if (raw instanceof Date) Reflect.apply(setTime, part.view, [raw.getTime()]);
  return part.view;
}

const setTime = Reflect.get(Date.prototype, "setTime");

/** Returns the current object of a part: the copy if there is one. */
export function rawOf({ base, own }: Part): object {
  return own ?? base;
}
