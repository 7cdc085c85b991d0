import type { RowLineage } from "../../episode/row-lineage.ts";
import type { TurnRole, TurnEdge } from "../../episode/turn-lineage.ts";
import { describeRole, linkWords } from "../../report/rows/lineage-words.ts";
import { formatCount } from "../../text/format-count.ts";

/** The lineage of each row of an episode, as its line has it. */
export type EpisodeLineage = readonly (RowLineage | null)[];

/** The role of a row, and the turn from which it follows. JSON-able. */
export interface RowOrigin {
  /** The row's role. Absent if the attempt has no other row with trained tokens. */
  readonly role?: TurnRole;
  /** The turn from which the row follows. Absent if there is no evidence. */
  readonly from?: OriginLink;
}

/** A turn of another row from which a row follows. JSON-able. */
export interface OriginLink {
  /** 0-based index of the row among all rows of the episode. */
  readonly row: number;
  /** 0-based index of the turn in the episode. */
  readonly turnIndex: number;
  readonly edge: TurnEdge;
}

/**
 * Returns the origin of a row.
 *
 * @param turnIndexes - The turns of each row, as far as they are known.
 */
export function originOf(
  row: number,
  lineage: EpisodeLineage,
  turnIndexes: readonly (readonly number[])[],
): RowOrigin {
  const own = lineage[row];
  if (own === undefined || own === null) return {};
  const { role, from } = own;
  if (from === undefined) return { role };
  // Links count only the rows with trained tokens.
  const at = lineage.findIndex((other) => other?.row === from.row);
  const turnIndex = turnIndexes[at]?.[from.turn];
  return turnIndex === undefined
    ? { role }
    : { role, from: { row: at, turnIndex, edge: from.edge } };
}

/** Describes a link to a turn of another row, such as `called by turn 3 of row 0`. */
export function originWords({ row, turnIndex, edge }: OriginLink): string {
  return linkWords(edge, `turn ${turnIndex} of row ${row}`);
}

/** The index of a row in its attempt, in words. */
export interface RowPlaceWords {
  /** The index, such as `row 1 (2 of 3)`. */
  readonly place: string;
  readonly role: string;
  /** The number of the row's trained tokens, and of the attempt's. */
  readonly tokens: string;
}

/**
 * Describes the index of a row in an attempt with several rows.
 *
 * @param about.segment - 0-based index of the row among all rows of the episode.
 * @param about.lineage - The row's `metadata.lineage`.
 */
export function rowPlaceWords(about: {
  readonly segment: number;
  readonly trainedCount: number;
  readonly lineage: RowLineage;
}): RowPlaceWords {
  const { segment, trainedCount, lineage } = about;
  const { role, row, rowCount, attemptTokenCount } = lineage;
  const share = attemptTokenCount === 0 ? 0 : (100 * trainedCount) / attemptTokenCount;
  return {
    place: `row ${segment} (${row + 1} of ${rowCount})`,
    role: describeRole(role),
    tokens:
      `${formatCount(trainedCount)} of the attempt's ` +
      `${formatCount(attemptTokenCount)} trained tokens (${share.toFixed(1)} %)`,
  };
}
