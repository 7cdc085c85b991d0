import { MapView, SetView } from "./collection-view.ts";
import { objectView } from "./object-view.ts";
import { holdsTwice } from "./holds-twice.ts";
import { isPlain, seal } from "./sealed.ts";
import { StateDraft, type Part } from "./state-draft.ts";

/**
 * One episode's state, changed by calls that are taken whole or not at all. What it starts from may be
 * shared by all episodes and large: it is frozen, and a part of it is copied when it is first written.
 * A state that holds something at two places is copied whole, so that it stays one thing.
 * Plain objects, lists, Maps and Sets are treated so; an instance of a class is passed as it is.
 */
export class EpisodeState<State> {
  /** What it started from. Frozen. */
  readonly initial: State;
  readonly #draft: StateDraft | undefined;

  constructor(initial: State) {
    this.initial = seal(initial);
    // A part that is held twice would become two when it is written in one place.
    this.#draft = isPlain(initial)
      ? new StateDraft(initial, viewOf, !holdsTwice(initial))
      : undefined;
  }

  /** What is there, as tools are given it: to be read, also later, and written while a call lasts. */
  get view(): State {
    return (this.#draft === undefined ? this.initial : this.#draft.view) as State;
  }

  /** What is there when all is over, in plain objects. Frozen. */
  close(): State {
    if (this.#draft === undefined) return this.initial;
    return seal(this.#draft.raw) as State;
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
  return objectView(part, draft);
}
