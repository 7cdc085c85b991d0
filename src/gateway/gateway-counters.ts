import { rootCauses, type PlacementNote, type RootCause } from "./tree/turn-node.ts";

/** The counts of a gateway since its start. JSON-able. */
export interface GatewayCounts {
  readonly turnCount: number;
  readonly continuedCount: number;
  readonly roots: Readonly<Partial<Record<RootCause, number>>>;
  readonly notes: Readonly<Partial<Record<PlacementNote, number>>>;
  readonly replayedCount: number;
  readonly undeliveredCount: number;
  /** Number of requests with a feature that was not enforced, by the feature's name. */
  readonly unenforced: Readonly<Record<string, number>>;
  /** Number of calls that were withheld because the client accepts one call a turn. */
  readonly leftOutCallCount: number;
  /** Number of requests that could not be read, by error message. */
  readonly refused: Readonly<Record<string, number>>;
  /** Number of requests with a field that has no effect, by the field's name. */
  readonly ignoredFields: Readonly<Record<string, number>>;
}

/** Causes of roots that indicate a client that rewrites its history. */
const surprisingCauses: ReadonlySet<RootCause> = new Set(
  rootCauses.filter(
    (cause) => !["first", "new-conversation", "repeated-prompt", "moved-turn"].includes(cause),
  ),
);

/** Maximum number of distinct names in a map, because clients choose the names. */
const maxNames = 100;

/** Maximum length of a name, in characters. Longer names are cut. */
const maxNameLength = 200;

/** Counts the names beyond `maxNames`. */
const otherName = "others";

/** Counts the requests and turns of a gateway. */
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

  /**
   * Counts a request that could not be read. List indexes in `why` are removed, so that equal
   * errors add up.
   */
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
   * Returns a warning if too many turns could not continue their conversation, or if requests gave
   * tools that the policy did not see. Otherwise returns `undefined`.
   *
   * @param share - The tolerated share of turns that start a root, from 0 to 1.
   */
  warning(share: number): string | undefined {
    const warnings = [this.#rootWarning(share), this.#toolWarning()].filter(
      (each) => each !== undefined,
    );
    return warnings.length === 0 ? undefined : warnings.join("; ");
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
