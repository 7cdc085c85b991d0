import {
  columnNames,
  namesOf,
  type ColumnName,
  type ColumnSpecs,
} from "../../columns/column-specs.ts";
import { UsageError } from "../../errors.ts";
import type { ExportMember } from "../exporter.ts";
import { exporters, type ExportTarget } from "../exporters.ts";
import type { ColumnRules } from "./column-rules.ts";

/** The side columns of a run that a trainer takes, and those that its export leaves out. */
export interface ChosenColumns {
  readonly taken: ColumnSpecs;
  readonly leftOut: readonly ColumnName[];
}

/**
 * Applies a trainer's rules to the side columns of a run.
 *
 * @throws UsageError if a column is refused.
 */
export function chooseColumns(to: ExportTarget, specs: ColumnSpecs): ChosenColumns {
  const { rules } = exporters[to].columns;
  const names = namesOf(specs);
  requireNoRefusal(to, specs);
  const taken = names.filter((name) => rules[name].action === "export");
  return {
    taken: Object.fromEntries(taken.map((name) => [name, specs[name]])),
    leftOut: names.filter((name) => rules[name].action === "leave-out"),
  };
}

/**
 * Refuses an export of columns that the trainer would misread.
 *
 * @throws UsageError if the trainer's rules refuse a column.
 */
function requireNoRefusal(
  to: ExportTarget,
  specs: Readonly<Partial<Record<ColumnName, unknown>>>,
): void {
  const refusal = findRefusal(to, exporters[to].columns.rules, specs);
  if (refusal !== undefined) throw new UsageError(`Cannot export this run to ${to}: ${refusal}`);
}

/**
 * Describes the first column of a run that the trainer's rules refuse: without it, the trainer would misread the rows.
 * Returns `undefined` if the rules refuse none.
 *
 * @returns a clause about the run with the remedy, such as `it has keptTokens, and …`.
 */
export function findRefusal(
  trainer: string,
  rules: ColumnRules,
  specs: Readonly<Partial<Record<ColumnName, unknown>>>,
): string | undefined {
  const name = columnNames.find(
    (name) => specs[name] !== undefined && rules[name].action === "refuse",
  );
  if (name === undefined) return undefined;
  const others = Object.entries(exporters)
    .filter(([, { columns }]) => columns.rules[name].action === "export")
    .map(([other]) => other);
  return (
    `it has ${name}, and ${trainer} has ${rules[name].why}; use a trainer that takes them ` +
    `(${others.join(", ")}), or play without them`
  );
}

/**
 * Checks that a group can be exported without its columns.
 *
 * @throws UsageError if a row has a column that the trainer takes, or that its rules refuse.
 */
export function requireNoColumns(to: ExportTarget, members: readonly ExportMember[]): void {
  const { rules } = exporters[to].columns;
  for (const { samples } of members) {
    for (const { columns: given, rolloutId } of samples) {
      const columns = given ?? {};
      requireNoRefusal(to, columns);
      const name = columnNames.find(
        (name) => columns[name] !== undefined && rules[name].action === "export",
      );
      if (name === undefined) continue;
      throw new UsageError(
        `Cannot hand over ${rolloutId} in ${to}'s form: it has ${name}, and this way has no side columns; take the ` +
          "groups by the Python package's shims, or export the run's folder",
      );
    }
  }
}
