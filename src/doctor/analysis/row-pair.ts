import type { RouteTable, TrainerRow } from "../input/trainer-row.ts";
import type { Sample } from "../../trajectory/sample.ts";

/** The parts of a training row that are examined. */
export type ExaminedRow = Pick<
  Sample,
  "rolloutId" | "segment" | "tokenIds" | "lossMask" | "logprobs" | "policyVersions" | "turns"
>;

/** A row with the trainer's logprobs of it. Both have the same number of tokens. */
export interface RowPair {
  readonly row: ExaminedRow;
  readonly trainer: TrainerRow;
  /** The engine's routes. Absent if the run has none, or if nothing compares them. */
  readonly routes?: RouteTable;
  /** The kind of each token, as an index of `tokenKinds`. */
  readonly kinds: Uint8Array;
}
