import { BinaryCopies, isBinary } from "../binary.ts";
import { MapView, SetView } from "./collection-view.ts";
import { copyGraph, noteBinaries, type CopyOptions } from "./copy-graph.ts";
import { DateView } from "./date-view.ts";
import { objectView } from "./object-view.ts";
import { hasSharedReference } from "./holds-twice.ts";
import { holdsBinary, isPlain, isSealed, seal } from "./sealed.ts";
import { StateDraft, type Part } from "./state-draft.ts";

/**
 * One episode's state. Each call's changes are applied completely or not at all. The initial state may be large and
 * shared by all episodes: it is frozen, and a part is copied at its first write. A state that references an object
 * twice is copied completely, so that the object stays one; an object with binary data, which cannot be frozen, is
 * copied too. This holds for plain objects, lists, Maps, Sets and Dates; an instance of any other class, including
 * one that extends Map, Set or Date, is passed as it is.
 */
export class EpisodeState<State> {
  readonly #base: State;
  #initial: State | undefined;
  readonly #draft: StateDraft | undefined;

  constructor(initial: State) {
    this.#base = seal(initial, true);
    // Binary data has no view of its own; the object that holds it does.
    const base = isBinary(initial) ? seal({ state: initial }) : initial;
    if (!isPlain(base)) return;
    // An object that is referenced twice would become two if one reference were written.
    const isGraph = hasSharedReference(base);
    this.#draft = new StateDraft(base, viewOf, (part) => !isGraph && isShareable(part));
  }

  /** The initial state. Frozen; a copy if it holds binary data. */
  get initial(): State {
    if (!holdsBinary(this.#base)) return this.#base;
    return (this.#initial ??= seal(copyForReading(this.#base)));
  }

  /** The size in bytes of the initial state's binary data, which each episode copies. */
  get binaryLength(): number {
    return this.#draft?.binaryLength ?? 0;
  }

  /** The tools' view of the current state. It can always be read; writes are allowed only during a call. */
  get view(): State {
    return this.#draft === undefined ? this.#base : this.#open(this.#draft.view);
  }

  /**
   * Ends the episode and returns the final state as plain objects. Frozen, except binary data, which is the
   * episode's own.
   */
  close(): State {
    return this.#draft === undefined ? this.#base : this.#open(seal(this.#draft.raw));
  }

  #open(held: object): State {
    return isBinary(this.#base) ? (held as { readonly state: State }).state : (held as State);
  }

  /**
   * Runs a call that may change the state. Its changes are undone if it throws or `keep` returns false for its
   * result.
   */
  async change<Result>(
    call: (state: State) => Promise<Result>,
    keep: (result: Result) => boolean,
  ): Promise<Result> {
    let isKept = false;
    this.#draft?.begin();
    try {
      const result = await call(this.view);
      isKept = keep(result);
      return result;
    } finally {
      this.#draft?.end(isKept);
    }
  }
}

function viewOf(part: Part, draft: StateDraft): object {
  if (part.base instanceof Map) return new MapView(part, draft);
  if (part.base instanceof Set) return new SetView(part, draft);
  if (part.base instanceof Date) return new DateView(part, draft);
  return objectView(part, draft);
}

/** True if the part does not change any more, so that copies may share it. */
function isShareable(part: object): boolean {
  return isSealed(part) && !holdsBinary(part);
}

function copyForReading<Value>(value: Value): Value {
  const options: CopyOptions = {
    copies: new Map(),
    binaries: new BinaryCopies(),
    read: (held) => held,
    isKept: isShareable,
    onCopy: () => {},
    takeMember: (held) => copyGraph(held, options),
  };
  noteBinaries([value], options);
  return copyGraph(value, options);
}
