import type { RowLineage } from "../../episode/row-lineage.ts";
import type { ReadyRow } from "../exporter.ts";

/** Returns the lineage of a row. `undefined` if its attempt has one row. */
export function lineageIn({ sample }: Pick<ReadyRow, "sample">): RowLineage | undefined {
  return sample.metadata["lineage"] as RowLineage | undefined;
}
