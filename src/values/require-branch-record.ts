import { UsageError } from "../errors.ts";

/**
 * Where a run that samples trees is written, all is recorded: a later start takes from there what the
 * branches part from.
 *
 * @throws UsageError where less is.
 */
export function requireBranchRecord(record: "all" | "failed" | "none"): void {
  if (record === "all") return;
  throw new UsageError(
    `Cannot branch (branchAt, or --branch-at) where record is "${record}": branches part from what is ` +
      "recorded; leave record (--record) out, or branchAt",
  );
}
