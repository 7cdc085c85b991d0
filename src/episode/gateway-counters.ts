import type { Rejection } from "./turn-lineage.ts";

/** Counts of a gateway's requests and turns. JSON-able. */
export interface GatewayCounts {
  readonly turnCount: number;
  readonly continuedCount: number;
  /** Number of turns that start a conversation, by cause (see `docs/gateway.md`). */
  readonly roots: Readonly<Record<string, number>>;
  /** Number of anomalies in histories, by kind (see `docs/gateway.md`). */
  readonly notes: Readonly<Record<string, number>>;
  readonly replayedCount: number;
  readonly undeliveredCount: number;
  /** Number of requests with a feature that was not enforced, by the feature's name. */
  readonly unenforced: Readonly<Record<string, number>>;
  /** Number of calls that were withheld because the client accepts one call a turn. */
  readonly leftOutCallCount: number;
  /** Number of rejected turns, which no later turn continued or used and no row trains, by evidence. */
  readonly rejectedTurns: Readonly<Record<string, number>>;
  /** Number of requests that were refused as wrong, by error message. */
  readonly refused: Readonly<Record<string, number>>;
  /** Number of requests with a field that has no effect, by the field's name. */
  readonly ignoredFields: Readonly<Record<string, number>>;
}

/** Causes of roots that do not indicate a client that rewrites its history. */
const usualCauses: ReadonlySet<string> = new Set([
  "first",
  "new-conversation",
  "repeated-prompt",
  "moved-turn",
]);

/** The tolerated share of turns that start a root for another cause, from 0 to 1. */
const toleratedShare = 0.05;

/** Maximum number of distinct names in a map, because clients choose the names. */
const maxNames = 100;

/** Maximum length of a name, in characters. Longer names are cut. */
const maxNameLength = 200;

/** The name under which the names beyond `maxNames` are counted. */
const otherName = "others";

/** Counts the requests and turns of a gateway, a session or a run. */
export class GatewayCounters {
  readonly #total: Pick<GatewayCounters, "add"> | undefined;
  readonly #numbers = {
    turnCount: 0,
    continuedCount: 0,
    replayedCount: 0,
    undeliveredCount: 0,
    leftOutCallCount: 0,
  };
  readonly #names = {
    roots: new Map<string, number>(),
    notes: new Map<string, number>(),
    unenforced: new Map<string, number>(),
    rejectedTurns: new Map<string, number>(),
    refused: new Map<string, number>(),
    ignoredFields: new Map<string, number>(),
  };

  /** @param total - Counters that count everything, too. */
  constructor(total?: Pick<GatewayCounters, "add">) {
    this.#total = total;
  }

  /** Counts a sampled turn. `cause` is `undefined` for a turn that continues a conversation. */
  turn(cause: string | undefined, notes: readonly string[]): void {
    this.add(
      cause === undefined
        ? { turnCount: 1, continuedCount: 1 }
        : { turnCount: 1, roots: { [cause]: 1 } },
    );
    for (const note of notes) this.add({ notes: { [note]: 1 } });
  }

  replayed(): void {
    this.add({ replayedCount: 1 });
  }

  undelivered(): void {
    this.add({ undeliveredCount: 1 });
  }

  unenforced(what: string): void {
    this.add({ unenforced: { [what]: 1 } });
  }

  leftOutCalls(leftOutCallCount: number): void {
    this.add({ leftOutCallCount });
  }

  /** Counts the rejected turns of a finished session. */
  rejected(tree: readonly { readonly rejected?: Rejection }[]): void {
    for (const { rejected } of tree) {
      if (rejected !== undefined) this.add({ rejectedTurns: { [rejected]: 1 } });
    }
  }

  /**
   * Counts a request that was refused as wrong. List indexes in `why` are removed, so that equal
   * errors add up.
   */
  refused(why: string): void {
    this.add({ refused: { [why.replaceAll(/\[\d+\]/g, "[]")]: 1 } });
  }

  ignored(fields: readonly string[]): void {
    for (const field of fields) this.add({ ignoredFields: { [field]: 1 } });
  }

  /** Adds other counts. */
  add(counts: Partial<GatewayCounts>): void {
    this.#total?.add(counts);
    for (const name of keysOf(this.#numbers)) this.#numbers[name] += counts[name] ?? 0;
    for (const name of keysOf(this.#names)) addNames(this.#names[name], counts[name] ?? {});
  }

  get counts(): GatewayCounts {
    const names = this.#names;
    return {
      turnCount: this.#numbers.turnCount,
      continuedCount: this.#numbers.continuedCount,
      roots: Object.fromEntries(names.roots),
      notes: Object.fromEntries(names.notes),
      replayedCount: this.#numbers.replayedCount,
      undeliveredCount: this.#numbers.undeliveredCount,
      unenforced: Object.fromEntries(names.unenforced),
      leftOutCallCount: this.#numbers.leftOutCallCount,
      rejectedTurns: Object.fromEntries(names.rejectedTurns),
      refused: Object.fromEntries(names.refused),
      ignoredFields: Object.fromEntries(names.ignoredFields),
    };
  }

  /** The counts that are not zero or empty. */
  get someCounts(): Partial<GatewayCounts> {
    return Object.fromEntries(
      Object.entries(this.counts).filter(([, value]: [string, number | object]) =>
        typeof value === "number" ? value !== 0 : Object.keys(value).length > 0,
      ),
    );
  }
}

/**
 * Returns a warning if too many turns could not continue their conversation, or if requests gave
 * tools that the policy did not see. Otherwise returns `undefined`.
 */
export function warningOf(counts: GatewayCounts): string | undefined {
  const warnings = [rootWarning(counts), toolWarning(counts)].filter((each) => each !== undefined);
  return warnings.length === 0 ? undefined : warnings.join("; ");
}

function rootWarning({ roots, turnCount }: GatewayCounts): string | undefined {
  const causes = Object.entries(roots).filter(([cause]) => !usualCauses.has(cause));
  const count = causes.reduce((sum, [, each]) => sum + each, 0);
  if (count === 0 || count <= toleratedShare * turnCount) return undefined;
  const listed = causes.map(([cause, each]) => `${cause} ${each}`).join(", ");
  return `${count} of ${turnCount} turns could not continue the conversation: ${listed}`;
}

function toolWarning({ unenforced }: GatewayCounts): string | undefined {
  const tools = Object.entries(unenforced).filter(([what]) => what.startsWith("tool "));
  if (tools.length === 0) return undefined;
  const listed = tools.map(([what, each]) => `${what.slice("tool ".length)} ${each}`).join(", ");
  return `requests gave tools of a server, which the policy was not shown: ${listed}`;
}

function keysOf<Name extends string>(of: Readonly<Record<Name, unknown>>): readonly Name[] {
  return Object.keys(of) as Name[];
}

function addNames(sums: Map<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) {
    const cut = name.slice(0, maxNameLength);
    const key = sums.size < maxNames || sums.has(cut) ? cut : otherName;
    sums.set(key, (sums.get(key) ?? 0) + count);
  }
}
