import { isDeepStrictEqual } from "node:util";
import { isCount, isRow, quote, type RawRow, type Violation } from "./violation.ts";

/** What all rows of a rollout have in common. */
const sharedFields = ["groupId", "taskId", "outcome", "stopReason", "reward", "failure"];

interface RolloutSeen {
  readonly line: number;
  readonly shared: readonly unknown[];
  segmentCount: number;
  /** What the next row's first turn is numbered. */
  nextTurnIndex: number;
  /** By turn, the hash of the ids that it was asked with. */
  readonly prompts: Map<number, unknown>;
}

/** A row with which a fork begins. */
interface ForkSeen {
  readonly line: number;
  readonly rolloutId: string;
  /** What it says that it parts from. */
  readonly from: unknown;
  readonly turnIndex: number;
}

/** Checks the rows of a file against each other, one after the other. */
export class RolloutCheck {
  readonly #rollouts = new Map<string, RolloutSeen>();
  readonly #taskOfGroup = new Map<string, unknown>();
  readonly #forks: ForkSeen[] = [];
  /** Rows whose sampled ids have no policy version. */
  readonly #nameless: { readonly line: number }[] = [];
  #isNamed = false;
  readonly #namesVersions: boolean;

  constructor({ namesVersions = false }: { readonly namesVersions?: boolean } = {}) {
    this.#namesVersions = namesVersions;
  }

  check(row: RawRow, line: number): Violation[] {
    this.#noteVersions(row, line);
    const { rolloutId, segment } = row;
    if (typeof rolloutId !== "string" || !isCount(segment)) return [];
    const shared = sharedFields.map((field) => row[field]);
    const seen = this.#rollouts.get(rolloutId) ?? {
      line,
      shared,
      segmentCount: 0,
      nextTurnIndex: 0,
      prompts: new Map(),
    };
    this.#rollouts.set(rolloutId, seen);
    const { rolloutId: from, turnIndex } = isRow(row["forkedFrom"]) ? row["forkedFrom"] : {};
    if (segment === 0 && isCount(turnIndex)) this.#forks.push({ line, rolloutId, from, turnIndex });
    return [
      ...checkSegment(rolloutId, segment, seen),
      ...checkShared(rolloutId, shared, seen),
      ...checkTurnIndexes(row, rolloutId, seen),
      ...this.#checkGroup(row),
    ];
  }

  /** What can be told only when all rows are known. */
  finish(): (Violation & { readonly line: number })[] {
    return [...this.#forks.flatMap((fork) => this.#checkFork(fork)), ...this.#checkNameless()];
  }

  /**
   * A fork's first turn is asked with the ids that the same turn of what it parts from was asked with. One
   * that begins with turn 0 shares nothing that was sampled, and may be asked otherwise.
   */
  #checkFork({ line, rolloutId, from, turnIndex }: ForkSeen) {
    if (turnIndex === 0) return [];
    const own = this.#rollouts.get(rolloutId)?.prompts.get(turnIndex);
    const other = typeof from === "string" ? this.#rollouts.get(from)?.prompts : undefined;
    // Rows of what it parts from may stand in another folder.
    if (own === undefined || other?.has(turnIndex) !== true) return [];
    if (own === other.get(turnIndex)) return [];
    const whose = `turn ${turnIndex} of ${quote(from)}, from which ${rolloutId} parts`;
    const detail = `the ids before turn ${turnIndex} are not those before ${whose}`;
    return [{ line, rule: "fork", detail }];
  }

  #checkNameless() {
    if (!this.#isNamed || !this.#namesVersions) return [];
    const detail = "no sampled id of the row has a policy version, and those of other rows have";
    return this.#nameless.map(({ line }) => ({ line, rule: "policy-versions", detail }));
  }

  #noteVersions({ policyVersions, lossMask }: RawRow, line: number): void {
    if (!Array.isArray(policyVersions) || !Array.isArray(lossMask)) return;
    const sampled = policyVersions.filter((_, index) => lossMask[index] === 1);
    if (sampled.some((version) => version !== "")) this.#isNamed = true;
    else if (sampled.length > 0) this.#nameless.push({ line });
  }

  #checkGroup({ groupId, taskId }: RawRow): Violation[] {
    if (typeof groupId !== "string") return [];
    const known = this.#taskOfGroup.get(groupId);
    if (known === undefined) this.#taskOfGroup.set(groupId, taskId);
    if (known === undefined || known === taskId) return [];
    const detail = `group ${groupId} is of task ${quote(known)} elsewhere, and of ${quote(taskId)} here`;
    return [{ rule: "group", detail }];
  }
}

function checkSegment(rolloutId: string, segment: number, seen: RolloutSeen): Violation[] {
  const expected = seen.segmentCount;
  seen.segmentCount = Math.max(expected, segment + 1);
  return segment === expected
    ? []
    : [{ rule: "segments", detail: `segment ${segment} of ${rolloutId}, expected ${expected}` }];
}

function checkShared(
  rolloutId: string,
  shared: readonly unknown[],
  seen: RolloutSeen,
): Violation[] {
  const different = sharedFields.filter(
    (_, index) => !isDeepStrictEqual(shared[index], seen.shared[index]),
  );
  if (different.length === 0) return [];
  const detail = `segments of ${rolloutId} differ in ${different.join(", ")} (see line ${seen.line})`;
  return [{ rule: "segments", detail }];
}

function checkTurnIndexes(
  { turns, forkedFrom }: RawRow,
  rolloutId: string,
  seen: RolloutSeen,
): Violation[] {
  if (!Array.isArray(turns)) return [];
  const forkTurn = isRow(forkedFrom) ? forkedFrom["turnIndex"] : undefined;
  if (isCount(forkTurn)) seen.nextTurnIndex = Math.max(seen.nextTurnIndex, forkTurn);
  const placed = turns.filter((turn): turn is RawRow => isRow(turn) && isCount(turn["turnIndex"]));
  const found: Violation[] = [];
  const first = placed[0]?.["turnIndex"];
  if (isCount(first) && first > seen.nextTurnIndex) {
    const detail = `the row begins with turn ${first} of ${rolloutId}, expected ${seen.nextTurnIndex}`;
    found.push({ rule: "turn-index", detail });
  }
  for (const { turnIndex, promptHash } of placed) {
    const index = Number(turnIndex);
    if (seen.prompts.has(index)) {
      const detail = `turn ${index} of ${rolloutId} is trained twice`;
      found.push({ rule: "trained-once", detail });
    }
    seen.prompts.set(index, promptHash);
    seen.nextTurnIndex = Math.max(seen.nextTurnIndex, index + 1);
  }
  return found;
}
