import type { RouteTable, TrainerRow } from "../input/trainer-row.ts";
import type { Sample } from "../../trajectory/sample.ts";

/** The parts of a training row that are examined. */
export type ExaminedRow = Pick<
  Sample,
  "rolloutId" | "segment" | "tokenIds" | "lossMask" | "logprobs" | "policyVersions" | "turns"
>;

/** A row, and the trainer's logprobs of the row. Both have the same number of tokens. */
export interface RowPair {
  readonly row: ExaminedRow;
  readonly trainer: TrainerRow;
  /** The routes of both sides, of one shape. Absent if a side has none. */
  readonly routes?: { readonly engine: RouteTable; readonly trainer: RouteTable } | undefined;
  /** The kind of each token, as an index of `tokenKinds`. */
  readonly kinds: Uint8Array;
}
