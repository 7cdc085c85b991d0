import type { TurnRole, TurnEdge, Rejection } from "../../episode/turn-lineage.ts";

/** A figure over attempts. JSON-able. */
export interface AttemptFigure {
  /** The sum over attempts divided by their number. */
  readonly mean: number;
  readonly max: number;
}

/** The training rows of one role. JSON-able. */
export interface RoleEvaluation {
  readonly rowCount: number;
  readonly turnCount: number;
  readonly trainedTokenCount: number;
  /** The part of the trained tokens of all rows, from 0 to 1. */
  readonly trainedTokenShare: number;
  /** The number of attempts with such a row. */
  readonly attemptCount: number;
  /** The mean over the scored ones of these attempts, each counted once. Absent if none is scored. */
  readonly averageReward?: number;
}

/** Turns that were sampled and that no row trains. JSON-able. */
export interface UntrainedTurns {
  readonly turnCount: number;
  readonly sampledTokenCount: number;
  /** The numbers of turns that nothing continued, by the evidence for it. */
  readonly rejected: Readonly<Partial<Record<Rejection, number>>>;
  /** The number of other turns that the agent did not receive completely. */
  readonly undelivered: number;
  /** The number of turns that were sampled for another model, or belong to a row that is left out. */
  readonly other: number;
}

/**
 * The training rows of a run in which attempts have several. Covers all attempts of the report that
 * have a row with trained tokens. JSON-able.
 */
export interface RowsEvaluation {
  readonly attemptCount: number;
  /** The number of attempts with at least two rows. */
  readonly severalRowsCount: number;
  readonly rowCount: number;
  readonly trainedTokenCount: number;
  readonly rowsPerAttempt: AttemptFigure;
  readonly trainedTokensPerAttempt: AttemptFigure;
  readonly byRole: Readonly<Partial<Record<TurnRole, RoleEvaluation>>>;
  /**
   * The numbers of links. `continuation` counts rows that continue another row; the others count
   * links between turns of `tree`.
   */
  readonly edges: Readonly<Partial<Record<TurnEdge, number>>>;
  /** The turns of all attempts' `tree` that no row trains. */
  readonly untrained: UntrainedTurns;
}
