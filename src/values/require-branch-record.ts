import { UsageError } from "../errors.ts";

/**
 * Requires that a run that samples trees and is written to disk records all episodes: a later start reads the
 * shared prefix of the branches from there.
 *
 * @throws UsageError if less is recorded.
 */
export function requireBranchRecord(record: "all" | "failed" | "none"): void {
  if (record === "all") return;
  throw new UsageError(
    `Cannot branch (branchAt, or --branch-at) where record is "${record}": branches start from what is ` +
      "recorded; leave record (--record) out, or branchAt",
  );
}
