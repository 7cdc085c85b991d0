import { BinaryCopies, isBinary } from "../binary.ts";
import { MapView, SetView } from "./collection-view.ts";
import { copyGraph, noteBinaries, type CopyOptions } from "./copy-graph.ts";
import { DateView } from "./date-view.ts";
import { objectView } from "./object-view.ts";
import { holdsTwice } from "./holds-twice.ts";
import { holdsBinary, isPlain, isSealed, seal } from "./sealed.ts";
import { StateDraft, type Part } from "./state-draft.ts";

/**
 * One episode's state, changed by calls that are taken whole or not at all. What it starts from may be
 * shared by all episodes and large: it is frozen, and a part of it is copied when it is first written.
 * A state that holds something at two places is copied whole, so that it stays one thing; binary data, which
 * nobody can freeze, is copied with what holds it. Plain objects, lists, Maps, Sets and Dates are treated so; an
 * instance of a class is passed as it is, also where that extends Map, Set or Date.
 */
export class EpisodeState<State> {
  readonly #base: State;
  #initial: State | undefined;
  readonly #draft: StateDraft | undefined;

  constructor(initial: State) {
    this.#base = seal(initial, true);
    // A view of binary data cannot be told from it: only what holds it is shown by one.
    const base = isBinary(initial) ? seal({ state: initial }) : initial;
    if (!isPlain(base)) return;
    // A part that is held twice would become two when it is written in one place.
    const isGraph = holdsTwice(base);
    this.#draft = new StateDraft(base, viewOf, (part) => !isGraph && isShareable(part));
  }

  /** What it started from. Frozen, and a copy of its own where it holds binary data. */
  get initial(): State {
    if (!holdsBinary(this.#base)) return this.#base;
    return (this.#initial ??= seal(copyForReading(this.#base)));
  }

  /** How many bytes of binary data it started from; each episode has a copy of them. */
  get binaryLength(): number {
    return this.#draft?.binaryLength ?? 0;
  }

  /** What is there, as tools are given it: to be read, also later, and written while a call lasts. */
  get view(): State {
    return this.#draft === undefined ? this.#base : this.#open(this.#draft.view);
  }

  /** What is there when all is over, in plain objects. Frozen, but for binary data, which is its own. */
  close(): State {
    return this.#draft === undefined ? this.#base : this.#open(seal(this.#draft.raw));
  }

  #open(held: object): State {
    return isBinary(this.#base) ? (held as { readonly state: State }).state : (held as State);
  }

  /** Lets a call change the state; where `keep` is false of its result, or it throws, nothing changed. */
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

/** Whether others may have it, as nobody writes it. */
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
