import type { TreeTurn } from "../../episode/episode.ts";
import { turnRoles, turnEdges, rejections } from "../../episode/turn-lineage.ts";
import type { TurnRole, TurnEdge, Rejection } from "../../episode/turn-lineage.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import type { CountedRow } from "./counted-row.ts";
import type { AttemptFigure, RoleEvaluation, RowsEvaluation } from "./rows-evaluation.ts";
import { mean } from "../../values/sum.ts";

interface RoleSums {
  rowCount: number;
  turnCount: number;
  trainedTokenCount: number;
  attemptCount: number;
  readonly rewards: number[];
}

/** Sums up the training rows of attempts. Each attempt counts once in the figures over attempts. */
export class RowTally {
  readonly #byRole = new Map<TurnRole, RoleSums>();
  readonly #edges = new Map<TurnEdge, number>();
  readonly #rejected = new Map<Rejection, number>();
  readonly #untrained = { turnCount: 0, sampledTokenCount: 0, undelivered: 0, other: 0 };
  readonly #rowsPerAttempt = new FigureSum();
  readonly #tokensPerAttempt = new FigureSum();
  #severalRowsCount = 0;

  /** Adds an attempt and its rows with trained tokens. An attempt without such a row has no figures. */
  add({ reward, tree }: Pick<EpisodeRow, "reward" | "tree">, rows: readonly CountedRow[]): void {
    for (const turn of tree ?? []) this.#addTurn(turn);
    if (rows.length === 0) return;
    if (rows.length > 1) this.#severalRowsCount += 1;
    this.#rowsPerAttempt.add(rows.length);
    this.#tokensPerAttempt.add(rows.reduce((sum, row) => sum + row.trainedTokenCount, 0));
    const roles = rows.map(({ lineage }) => lineage?.role ?? roleOfOnlyRow(tree));
    for (const [index, row] of rows.entries()) this.#addRow(row, this.#sumsOf(roles[index]!));
    for (const role of new Set(roles)) {
      const sums = this.#sumsOf(role);
      sums.attemptCount += 1;
      if (reward !== undefined) sums.rewards.push(reward);
    }
  }

  #addRow({ turnCount, trainedTokenCount, lineage }: CountedRow, sums: RoleSums): void {
    sums.rowCount += 1;
    sums.turnCount += turnCount;
    sums.trainedTokenCount += trainedTokenCount;
    // The tree has a link for each branch at a turn, also for the one that its own row continues.
    if (lineage?.from?.edge === "continuation") increase(this.#edges, "continuation");
  }

  #addTurn({ from, turnIndex, rejected, isDelivered, sampledTokenCount }: TreeTurn): void {
    if (from !== undefined && from.edge !== "continuation") increase(this.#edges, from.edge);
    if (turnIndex !== undefined) return;
    this.#untrained.turnCount += 1;
    this.#untrained.sampledTokenCount += sampledTokenCount;
    if (rejected !== undefined) increase(this.#rejected, rejected);
    else if (isDelivered) this.#untrained.other += 1;
    else this.#untrained.undelivered += 1;
  }

  #sumsOf(role: TurnRole): RoleSums {
    const known = this.#byRole.get(role);
    if (known !== undefined) return known;
    const sums = { rowCount: 0, turnCount: 0, trainedTokenCount: 0, attemptCount: 0, rewards: [] };
    this.#byRole.set(role, sums);
    return sums;
  }

  /** Returns the sums so far, or `undefined` if no attempt has several rows. */
  evaluation(): RowsEvaluation | undefined {
    if (this.#severalRowsCount === 0) return undefined;
    const { turnCount, sampledTokenCount, undelivered, other } = this.#untrained;
    const trainedTokenCount = this.#tokensPerAttempt.sum;
    return {
      attemptCount: this.#rowsPerAttempt.count,
      severalRowsCount: this.#severalRowsCount,
      rowCount: this.#rowsPerAttempt.sum,
      trainedTokenCount,
      rowsPerAttempt: this.#rowsPerAttempt.figure,
      trainedTokensPerAttempt: this.#tokensPerAttempt.figure,
      byRole: inOrder(turnRoles, (role) => toRole(this.#byRole.get(role), trainedTokenCount)),
      edges: inOrder(turnEdges, (edge) => this.#edges.get(edge)),
      untrained: {
        turnCount,
        sampledTokenCount,
        rejected: inOrder(rejections, (rejection) => this.#rejected.get(rejection)),
        undelivered,
        other,
      },
    };
  }
}

/** Sums up one value an attempt. */
class FigureSum {
  count = 0;
  sum = 0;
  #max = 0;

  add(value: number): void {
    this.count += 1;
    this.sum += value;
    this.#max = Math.max(this.#max, value);
  }

  get figure(): AttemptFigure {
    return { mean: this.sum / this.count, max: this.#max };
  }
}

/** Returns the role of the only row of an attempt: that of its first trained turn. */
function roleOfOnlyRow(tree: readonly TreeTurn[] | undefined): TurnRole {
  if (tree === undefined) return "main";
  return tree.find(({ turnIndex }) => turnIndex !== undefined)?.role ?? "unknown";
}

function toRole(sums: RoleSums | undefined, all: number): RoleEvaluation | undefined {
  if (sums === undefined) return undefined;
  const { rowCount, turnCount, trainedTokenCount, attemptCount, rewards } = sums;
  return {
    rowCount,
    turnCount,
    trainedTokenCount,
    trainedTokenShare: trainedTokenCount / all,
    attemptCount,
    ...(rewards.length !== 0 && { averageReward: mean(rewards) }),
  };
}

function increase<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Returns the known values by name, in the order of the names. */
function inOrder<Name extends string, Value>(
  names: readonly Name[],
  valueOf: (name: Name) => Value | undefined,
): Partial<Record<Name, Value>> {
  const known: Partial<Record<Name, Value>> = {};
  for (const name of names) {
    const value = valueOf(name);
    if (value !== undefined) known[name] = value;
  }
  return known;
}
