import type { RowLineage } from "../../episode/row-lineage.ts";
import type { ReadyRow } from "../exporter.ts";

/** Returns the lineage of a row. `undefined` if its attempt has one row. */
export function lineageIn({ sample }: Pick<ReadyRow, "sample">): RowLineage | undefined {
  return sample.metadata["lineage"] as RowLineage | undefined;
}

/** Returns the lineage as a member of a record, for forms with a record for each row. */
export function lineageMember(row: Pick<ReadyRow, "sample">): { readonly lineage?: RowLineage } {
  const lineage = lineageIn(row);
  return lineage === undefined ? {} : { lineage };
}
