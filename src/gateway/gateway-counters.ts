import { rootCauses, type PlacementNote, type RootCause } from "./tree/turn-node.ts";

/** What a gateway has seen so far. JSON-able. */
export interface GatewayCounts {
  readonly turnCount: number;
  readonly continuedCount: number;
  readonly roots: Readonly<Partial<Record<RootCause, number>>>;
  readonly notes: Readonly<Partial<Record<PlacementNote, number>>>;
  readonly replayedCount: number;
  readonly undeliveredCount: number;
  /** Requests of which nothing enforced a part, such as their tool choice or a tool of a server, by what it was. */
  readonly unenforced: Readonly<Record<string, number>>;
  /** Calls that the policy made and the client did not get, because it takes one a turn. */
  readonly leftOutCallCount: number;
  /** Requests that could not be read, by what was wrong with them. */
  readonly refused: Readonly<Record<string, number>>;
  /** Fields of requests that changed nothing, by their names. */
  readonly ignoredFields: Readonly<Record<string, number>>;
}

/** Causes that a client brings about by what it does to its history. */
const surprisingCauses: ReadonlySet<RootCause> = new Set(
  rootCauses.filter(
    (cause) => !["first", "new-conversation", "repeated-prompt", "moved-turn"].includes(cause),
  ),
);

/** So many names are told apart: clients choose them. */
const maxNames = 100;

/** Longer names are cut. */
const maxNameLength = 200;

/** The name under which what does not fit any more is counted. */
const otherName = "others";

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
  readonly #refused = new Map<string, number>();
  #leftOutCallCount = 0;

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
    addName(this.#unenforced, what);
  }

  leftOutCalls(count: number): void {
    this.#leftOutCallCount += count;
  }

  /** Counts a request that could not be read. `why` may name places of lists: these are counted together. */
  refused(why: string): void {
    addName(this.#refused, why.replaceAll(/\[\d+\]/g, "[]"));
  }

  ignored(fields: readonly string[]): void {
    for (const field of fields) addName(this.#ignored, field);
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
      leftOutCallCount: this.#leftOutCallCount,
      refused: Object.fromEntries(this.#refused),
      ignoredFields: Object.fromEntries(this.#ignored),
    };
  }

  /**
   * What a person should know before training: that clients change their histories so often that many
   * turns begin anew, and that they gave tools that the policy was not shown. `undefined` where neither is so.
   *
   * @param share - So many of all turns, from 0 to 1.
   */
  warning(share: number): string | undefined {
    const said = [this.#rootWarning(share), this.#toolWarning()].filter(
      (each) => each !== undefined,
    );
    return said.length === 0 ? undefined : said.join("; ");
  }

  #rootWarning(share: number): string | undefined {
    const causes = [...this.#roots].filter(([cause]) => surprisingCauses.has(cause));
    const count = causes.reduce((sum, [, each]) => sum + each, 0);
    if (count === 0 || count <= share * this.#turnCount) return undefined;
    const listed = causes.map(([cause, each]) => `${cause} ${each}`).join(", ");
    return `${count} of ${this.#turnCount} turns could not continue the conversation: ${listed}`;
  }

  #toolWarning(): string | undefined {
    const tools = [...this.#unenforced].filter(([what]) => what.startsWith("tool "));
    if (tools.length === 0) return undefined;
    const listed = tools.map(([what, each]) => `${what.slice("tool ".length)} ${each}`).join(", ");
    return `requests gave tools of a server, which the policy was not shown: ${listed}`;
  }
}

function add<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function addName(counts: Map<string, number>, name: string): void {
  const cut = name.slice(0, maxNameLength);
  add(counts, counts.size < maxNames || counts.has(cut) ? cut : otherName);
}
