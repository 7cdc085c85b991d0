import { isObject } from "../values/is-object.ts";
import { isDeepStrictEqual } from "node:util";
import { isCount, quote, type RawRow, type Violation } from "./violation.ts";

/** Fields with the same value in all rows of a rollout. */
const sharedFields = ["groupId", "taskId", "outcome", "stopReason", "reward", "failure"];

interface RolloutSeen {
  readonly line: number;
  readonly shared: readonly unknown[];
  segmentCount: number;
  /** Index of the next row's first turn. */
  nextTurnIndex: number;
  /** Hash of the prompt ids, by turn. */
  readonly prompts: Map<number, unknown>;
}

/** The first row of a fork. */
interface ForkSeen {
  readonly line: number;
  readonly rolloutId: string;
  /** The id of the original rollout, as the fork's row states it. */
  readonly from: unknown;
  readonly turnIndex: number;
}

/** Checks the rows of a file against each other, in order. */
export class RolloutCheck {
  readonly #rollouts = new Map<string, RolloutSeen>();
  readonly #taskOfGroup = new Map<string, unknown>();
  readonly #forks: ForkSeen[] = [];
  /** Rows with sampled ids but without policy versions. */
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
    const { rolloutId: from, turnIndex } = isObject(row["forkedFrom"]) ? row["forkedFrom"] : {};
    if (segment === 0 && isCount(turnIndex)) this.#forks.push({ line, rolloutId, from, turnIndex });
    return [
      ...checkSegment(rolloutId, segment, seen),
      ...checkShared(rolloutId, shared, seen),
      ...checkTurnIndexes(row, rolloutId, seen),
      ...this.#checkGroup(row),
    ];
  }

  /** Returns the violations that show only after the last row. */
  finish(): (Violation & { readonly line: number })[] {
    return [...this.#forks.flatMap((fork) => this.#checkFork(fork)), ...this.#checkNameless()];
  }

  /**
   * Checks that a fork's first turn has the prompt of the same turn of the original. A fork at turn 0 shares no sampled
   * ids, and may have another prompt.
   */
  #checkFork({ line, rolloutId, from, turnIndex }: ForkSeen) {
    if (turnIndex === 0) return [];
    const own = this.#rollouts.get(rolloutId)?.prompts.get(turnIndex);
    const other = typeof from === "string" ? this.#rollouts.get(from)?.prompts : undefined;
    // The original's rows may be in another folder.
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
  const forkTurn = isObject(forkedFrom) ? forkedFrom["turnIndex"] : undefined;
  if (isCount(forkTurn)) seen.nextTurnIndex = Math.max(seen.nextTurnIndex, forkTurn);
  const placed = turns.filter(
    (turn): turn is RawRow => isObject(turn) && isCount(turn["turnIndex"]),
  );
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
