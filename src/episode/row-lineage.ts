import type { TurnEdge, TurnRole } from "./turn-lineage.ts";

/** A turn of another row from which a row comes. JSON-able. */
export interface LineageLink {
  /** 0-based index of the row among the attempt's rows with a trained token. */
  readonly row: number;
  /** 0-based index in the `turns` of that row. */
  readonly turn: number;
  readonly edge: TurnEdge;
}

/** The relation of a training row to the other rows of its attempt. JSON-able. */
export interface RowLineage {
  readonly role: TurnRole;
  /** 0-based index among the attempt's rows with a trained token. */
  readonly row: number;
  /** The number of rows with a trained token. At least 2. */
  readonly rowCount: number;
  /** The number of trained tokens in all rows of the attempt. */
  readonly attemptTokenCount: number;
  /** The turn from which the row comes. Absent if there is no evidence, and for the first row. */
  readonly from?: LineageLink;
}
