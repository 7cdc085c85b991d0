import { namesOf, type ColumnName, type ColumnSpecs } from "../../columns/column-specs.ts";
import { UsageError } from "../../errors.ts";
import type { ExportMember } from "../exporter.ts";
import { exporters, type ExportTarget } from "../exporters.ts";

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
  for (const name of names) if (rules[name].action === "refuse") throw refused(to, name);
  const taken = names.filter((name) => rules[name].action === "export");
  return {
    taken: Object.fromEntries(taken.map((name) => [name, specs[name]])),
    leftOut: names.filter((name) => rules[name].action === "leave-out"),
  };
}

function refused(to: ExportTarget, name: ColumnName): UsageError {
  const others = Object.entries(exporters)
    .filter(([, { columns }]) => columns.rules[name].action === "export")
    .map(([other]) => other);
  return new UsageError(
    `Cannot export this run to ${to}: it has ${name}, and ${to} has ${exporters[to].columns.rules[name].why}; ` +
      `use a trainer that takes them (${others.join(", ")}), or play without them`,
  );
}

/**
 * Checks that a group without its columns can be handed over.
 *
 * @throws UsageError if the trainer takes a column of a row, or must not miss it.
 */
export function requireNoColumns(to: ExportTarget, members: readonly ExportMember[]): void {
  const { rules } = exporters[to].columns;
  for (const { samples } of members) {
    for (const { columns, rolloutId } of samples) {
      const name = (Object.keys(columns ?? {}) as ColumnName[]).find(
        (name) => rules[name].action !== "leave-out",
      );
      if (name === undefined) continue;
      if (rules[name].action === "refuse") throw refused(to, name);
      throw new UsageError(
        `Cannot hand over ${rolloutId} in ${to}'s form: it has ${name}, and this way has no side columns; take the ` +
          "groups by the Python package's shims, or export the run's folder",
      );
    }
  }
}
