import { countTrained } from "../../trajectory/count-trained.ts";
import type { Sample } from "../../trajectory/sample.ts";

/** Returns the row with the most trained tokens: the first one of equals. There is at least one row. */
export function longestRow(rows: readonly Sample[]): Sample {
  return rows
    .map((row) => ({ row, count: countTrained(row.lossMask) }))
    .reduce((best, next) => (next.count > best.count ? next : best)).row;
}
