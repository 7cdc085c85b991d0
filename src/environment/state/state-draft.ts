import { BinaryCopies, bufferOf, isBinary, type Binary } from "../binary.ts";
import { copyGraph, copyOf, memberOf, noteBinaries, putMember } from "./copy-graph.ts";
import { assertKey } from "./map-key.ts";
import { holdsBinary, isPlain, isSealed, isSealedWhole, refuseWrite, sealAlone } from "./sealed.ts";

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
  /** Told when the call under way copies it: those who go through it go on in the copy. */
  walks?: Set<() => void> | undefined;
}

/** Where a write put something. */
interface Place {
  readonly raw: object;
  readonly key: unknown;
}

/**
 * An episode's view of a state that others share. A part is copied when it is first written, once in
 * an episode, with those that hold it; writes are remembered, so that those of a call can be taken back.
 * What a call brings in is copied when it ends, so that nothing of it is anybody else's.
 * Binary data is written without anybody being told: it is copied at first, and what it holds is remembered when a
 * call first reads it.
 */
export class StateDraft {
  /** Whether writes are taken: while a call lasts. */
  isOpen = false;
  /** How many bytes of binary data it began with. */
  readonly binaryLength: number;
  readonly #byOwn = new WeakMap<object, Part>();
  readonly #byView = new WeakMap<object, Part>();
  readonly #makeView: (part: Part, draft: StateDraft) => object;
  readonly #root: Part;
  /** How to take back what was written since `begin()`, latest last. */
  #undo: (() => void)[] = [];
  /** The episode's own, which nobody else has. */
  readonly #mine = new WeakSet();
  /** Where the call under way put what was not there before. */
  #added: Place[] = [];
  /** The Sets that it put something new into, each with all that it put there from then on, latest last. */
  #filledSets = new Map<Set<unknown>, Set<unknown>>();
  /** What it brought in, with the copies that the state keeps of it. */
  #copies = new Map<object, object>();
  /** The binary data among that. */
  #binaries = new BinaryCopies();
  /** The copies of what Sets were given: there a value is known by what it is, in later calls too. */
  readonly #members = new WeakMap<object, object>();
  /** What it goes through. */
  #walked: Part[] = [];
  /** What it took something out of: how that was is remembered as a whole. */
  #emptied = new Set<object>();
  /** The buffers that it read, of which it is remembered what they held. */
  #remembered = new Set<ArrayBuffer>();

  /** @param isShared - Whether a part of the base is copied only when it is written, rather than at once. */
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

  /** The state as it is, without views. */
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
    this.#remembered = new Set();
    this.isOpen = true;
  }

  /**
   * Ends a call: what it changed stays, or is taken back.
   *
   * @throws TypeError where it brought in what cannot be kept; nothing stays then.
   */
  end(isKept: boolean): void {
    this.isOpen = false;
    for (const part of this.#walked) part.walks = undefined;
    this.#walked = [];
    if (!isKept) return this.#takeBack();
    try {
      this.#keepAdded();
    } catch (error) {
      this.#takeBack();
      throw error;
    }
  }

  #takeBack(): void {
    for (const undo of this.#undo.toReversed()) undo();
  }

  /** From here on nobody outside has what is in the state: whoever brought it may have it elsewhere. */
  #keepAdded(): void {
    // What is no part of the state is copied with what holds it.
    const places = this.#added.filter(({ raw }) => this.#mine.has(raw));
    const members = [...this.#filledSets.values()].flatMap((added) => [...added]);
    noteBinaries([...places.map(({ raw, key }) => memberOf(raw, key)), ...members], this.#copying);
    for (const { raw, key } of places) {
      const held = memberOf(raw, key);
      const own = this.#copy(held);
      if (own !== held) putMember(raw, key, own);
    }
    for (const [set, added] of this.#filledSets) {
      if (!this.#mine.has(set)) continue;
      // They are the last of the Set, and come back in their order.
      const still = [...added].filter((one) => set.delete(one));
      for (const one of still) set.add(this.#takeMember(one));
    }
    // Whoever writes there later believes that it is the state.
    for (const one of this.#copies.keys()) sealAlone(one);
  }

  /** The episode's own copy of a value that may be somebody else's too; itself where it is its own. */
  #take<Value>(value: Value, isShared = (_held: object) => false): Value {
    const isKept = (held: object) => this.#isMine(held) || isShared(held);
    noteBinaries([value], { ...this.#copying, isKept });
    return this.#copy(value, isKept);
  }

  /** The same where the binary data in it was noted before. */
  #copy<Value>(value: Value, isKept = (held: object) => this.#isMine(held)): Value {
    return copyGraph(value, {
      ...this.#copying,
      isKept,
      takeMember: this.#takeMember,
      onCopy: (held, copy) => {
        if (copy instanceof Map && !isSealed(held)) this.#assertKeys(copy);
        this.#mine.add(isBinary(copy) ? bufferOf(copy) : copy);
        const part = this.#byOwn.get(held);
        if (part === undefined) return;
        // It was read while the call lasted.
        part.own = copy;
        this.#byOwn.delete(held);
        this.#byOwn.set(copy, part);
      },
    });
  }

  /** Of a Map that a call brings in whole. */
  #assertKeys(map: ReadonlyMap<unknown, unknown>): void {
    for (const key of map.keys()) if (typeof key === "object") assertKey(key, this.isView(key));
  }

  get #copying() {
    return {
      copies: this.#copies,
      binaries: this.#binaries,
      read: (held: object) => this.#read(held) as object,
      isKept: (held: object) => this.#isMine(held),
    };
  }

  /** Of binary data it is the buffer that is somebody's. */
  #isMine(held: object): boolean {
    return this.#mine.has(isBinary(held) ? bufferOf(held) : held);
  }

  /** The same of what a Set holds: what others share is read there only, and anything else has one copy. */
  readonly #takeMember = (held: unknown): unknown => {
    if (!isPlain(held) && !isBinary(held)) return held;
    if (this.#isMine(held) || (isSealedWhole(held) && !holdsBinary(held))) return held;
    const known = this.#members.get(held);
    if (known !== undefined) return known;
    const own = this.#take(held);
    if (own !== held && !this.#byView.has(held)) this.#members.set(held, own);
    return own;
  };

  /** What a view is of; any other value is itself. */
  #read(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    const part = this.#byView.get(value);
    // It may be moved and then written: the episode's own copy is the same one wherever it is.
    return part === undefined ? value : this.own(part);
  }

  /** Whether a tool was given the value in the place of a part. */
  isView(value: unknown): boolean {
    return typeof value === "object" && value !== null && this.#byView.has(value);
  }

  /** A held value as a tool is given it. */
  show(value: unknown, holder: Part, key: unknown): unknown {
    if (isBinary(value)) return this.#showBinary(value);
    if (!isPlain(value) || this.#byView.has(value)) return value;
    const own = this.#byOwn.get(value);
    if (own !== undefined) return viewOf(own);
    const known = holder.held.get(key);
    // One that was copied and is not found here as its copy was taken out: this is another one.
    if (known?.base === value && known.own === undefined) return known.view;
    const part = this.#find(value, holder, key);
    holder.held.set(key, part);
    return part.view;
  }

  /** As it is: whoever has it writes it. What the call under way brought in is taken back as a whole. */
  #showBinary(value: Binary): Binary {
    const buffer = bufferOf(value);
    if (!this.isOpen || this.#remembered.has(buffer) || !this.#mine.has(buffer)) return value;
    this.#remembered.add(buffer);
    const before = new Uint8Array(buffer.slice(0));
    this.#undo.push(() => new Uint8Array(buffer).set(before));
    return value;
  }

  /** What a Set holds as a tool is given it: what is the episode's own can be written, all else is as it is. */
  showInSet(value: unknown): unknown {
    if (isBinary(value)) return this.#showBinary(value);
    if (!isPlain(value) || !this.#mine.has(value)) return value;
    const part = this.#byOwn.get(value) ?? this.#find(value, undefined, undefined);
    return viewOf(part);
  }

  /** A value as it is kept, of one that a tool wrote. */
  unwrap(value: unknown): unknown {
    const held = this.#read(value);
    // Nobody changes it any more, so that its copy is as good while the call lasts.
    return isPlain(held) && isSealed(held) ? this.#take(held) : held;
  }

  /** The same of one that a tool puts into a Set. */
  unwrapMember(value: unknown): unknown {
    const held = this.#read(value);
    return isPlain(held) && isSealed(held) ? this.#takeMember(held) : held;
  }

  /**
   * What a Set or a list may hold of a value that a tool has: nothing is copied for the question. One that the call
   * under way brought in holds what the tool put there, which may be a view.
   */
  formsOf(value: unknown): readonly unknown[] {
    if (typeof value !== "object" || value === null) return [value];
    const held = this.#heldOf(value);
    const view = this.#byOwn.get(held)?.view;
    return [...new Set([value, held, view ?? held])];
  }

  /** What the state holds of it, if it holds it. */
  #heldOf(value: object): object {
    const part = this.#byView.get(value);
    return part === undefined
      ? (this.#copies.get(value) ?? this.#members.get(value) ?? value)
      : rawOf(part);
  }

  /** Takes note of a write: `undo` takes it back, `added` is what it brought to `place`. */
  note(undo: () => void, added?: unknown, place?: Place): void {
    this.#undo.push(undo);
    if (place !== undefined && this.#isNew(added)) this.#added.push(place);
  }

  /** Takes note of what is put into a Set that does not hold it. */
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
    return (isPlain(added) || isBinary(added)) && !this.#isMine(added);
  }

  /**
   * Takes note that something is taken out of `own`, or its members change places. What is as large as all
   * that it holds is remembered once in a call.
   *
   * @param undoLater - Remembers how it is, and says how it becomes so again.
   */
  noteRemoval(own: object, undoLater: () => () => void): void {
    if (this.#emptied.has(own)) return;
    this.#emptied.add(own);
    this.#undo.push(undoLater());
  }

  /** The episode's own copy of a part, made where there is none. */
  own(part: Part): object {
    if (part.own !== undefined) return part.own;
    const own = copyOf(part.base);
    part.own = own;
    this.#mine.add(own);
    this.#byOwn.set(own, part);
    const { holder, key } = part;
    // It may have been taken out of where it was found.
    if (holder !== undefined && memberOf(rawOf(holder), key) === part.base) {
      putMember(this.own(holder), key, own);
    }
    for (const goOn of part.walks ?? []) goOn();
    part.walks = undefined;
    return own;
  }

  /**
   * Goes through a Map or a Set as it changes meanwhile: where it is copied on the way, on in the copy.
   *
   * @param entriesOf - What is gone through of what it is.
   */
  *walk<Entry>(
    part: Part,
    entriesOf: (raw: object) => Iterator<Entry>,
  ): Generator<Entry, undefined> {
    let rest = entriesOf(rawOf(part));
    let passedCount = 0;
    const goOn = (): void => {
      rest = entriesOf(rawOf(part));
      for (let count = 0; count < passedCount; count++) rest.next();
    };
    if (this.isOpen && part.own === undefined) {
      if (part.walks === undefined) this.#walked.push(part);
      part.walks ??= new Set();
      part.walks.add(goOn);
    }
    try {
      for (;;) {
        const next = rest.next();
        if (next.done === true) return undefined;
        passedCount += 1;
        yield next.value;
      }
    } finally {
      part.walks?.delete(goOn);
    }
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

/** What a tool is given of a part; who reads a Date without its methods sees the time that its view itself has. */
function viewOf(part: Part): object {
  const raw = rawOf(part);
  // What the call under way brought in is written without the view, too.
  if (raw instanceof Date) Reflect.apply(setTime, part.view, [raw.getTime()]);
  return part.view;
}

const setTime = Reflect.get(Date.prototype, "setTime");

/** A part as it is. */
export function rawOf({ base, own }: Part): object {
  return own ?? base;
}
