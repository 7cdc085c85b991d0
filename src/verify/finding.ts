import type { Violation } from "../trajectory/violation.ts";

/** A broken invariant and its place in a run's folder. JSON-able. */
export interface Finding extends Violation {
  /** The file's name. */
  readonly file: string;
  /** 1-based line number. Absent if the finding concerns the complete file. */
  readonly line?: number;
}

/** The findings in one file. */
export function findingsIn(
  file: string,
  violations: readonly (Violation & { readonly line?: number })[],
): readonly Finding[] {
  return violations.map(({ line, rule, detail }) => ({
    file,
    ...(line !== undefined && { line }),
    rule,
    detail,
  }));
}
