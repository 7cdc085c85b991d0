import type { ColumnPart, ColumnParts } from "../../columns/column-part.ts";
import type { ColumnName } from "../../columns/column-specs.ts";
import type { Inputs } from "../../episode/inputs/input.ts";

/** A part with its column's name. */
export interface NamedPart {
  readonly name: ColumnName;
  readonly part: ColumnPart;
}

/** Lists the parts of side columns that recorded generations name. */
export function recordedParts({ inputs }: Pick<Inputs, "inputs">): readonly NamedPart[] {
  return inputs.flatMap((input) =>
    input.type === "generation" && "value" in input.outcome
      ? namedParts(input.outcome.value.columns)
      : [],
  );
}

/** Lists the parts of columns. */
export function namedParts(columns: ColumnParts = {}): readonly NamedPart[] {
  return (Object.keys(columns) as ColumnName[]).flatMap((name) =>
    columns[name]!.map((part) => ({ name, part })),
  );
}
