import { rootCauses, type PlacementNote, type RootCause } from "./tree/turn-node.ts";

/** What a gateway has seen so far. JSON-able. */
export interface GatewayCounts {
  readonly turnCount: number;
  readonly continuedCount: number;
  readonly roots: Readonly<Partial<Record<RootCause, number>>>;
  readonly notes: Readonly<Partial<Record<PlacementNote, number>>>;
  readonly replayedCount: number;
  readonly undeliveredCount: number;
  /** Requests whose tool choice or text format nothing enforced, by what it was. */
  readonly unenforced: Readonly<Record<string, number>>;
  /** Fields of requests that changed nothing, by their names. */
  readonly ignoredFields: Readonly<Record<string, number>>;
}

/** Causes that a client brings about by what it does to its history. */
const surprisingCauses: ReadonlySet<RootCause> = new Set(
  rootCauses.filter(
    (cause) => !["first", "new-conversation", "repeated-prompt", "moved-turn"].includes(cause),
  ),
);

/** So many names of fields are told apart. */
const maxNames = 100;

/** Counts what a gateway sees. */
export class GatewayCounters {
  #turnCount = 0;
  #continuedCount = 0;
  #replayedCount = 0;
  #undeliveredCount = 0;
  readonly #roots = new Map<RootCause, number>();
  readonly #notes = new Map<PlacementNote, number>();
  readonly #unenforced = new Map<string, number>();
  readonly #ignored = new Map<string, number>();

  turn(cause: RootCause | undefined, notes: readonly PlacementNote[]): void {
    this.#turnCount += 1;
    if (cause === undefined) this.#continuedCount += 1;
    else add(this.#roots, cause);
    for (const note of notes) add(this.#notes, note);
  }

  replayed(): void {
    this.#replayedCount += 1;
  }

  undelivered(): void {
    this.#undeliveredCount += 1;
  }

  unenforced(what: string): void {
    add(this.#unenforced, what);
  }

  ignored(fields: readonly string[]): void {
    for (const field of fields) {
      if (this.#ignored.size < maxNames || this.#ignored.has(field)) add(this.#ignored, field);
    }
  }

  get counts(): GatewayCounts {
    return {
      turnCount: this.#turnCount,
      continuedCount: this.#continuedCount,
      roots: Object.fromEntries(this.#roots),
      notes: Object.fromEntries(this.#notes),
      replayedCount: this.#replayedCount,
      undeliveredCount: this.#undeliveredCount,
      unenforced: Object.fromEntries(this.#unenforced),
      ignoredFields: Object.fromEntries(this.#ignored),
    };
  }

  /**
   * What a person should know before training: that clients change their histories so often that many
   * turns begin anew. `undefined` where they do not.
   *
   * @param share - So many of all turns, from 0 to 1.
   */
  warning(share: number): string | undefined {
    const causes = [...this.#roots].filter(([cause]) => surprisingCauses.has(cause));
    const count = causes.reduce((sum, [, each]) => sum + each, 0);
    if (count === 0 || count <= share * this.#turnCount) return undefined;
    const listed = causes.map(([cause, each]) => `${cause} ${each}`).join(", ");
    return `${count} of ${this.#turnCount} turns could not continue the conversation: ${listed}`;
  }
}

function add<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
