import { isObject } from "../../values/is-object.ts";
import { type RawRow, type Violation } from "../../trajectory/violation.ts";

/** A list of values in a record. `place(i)` is the path of the i-th value, for messages. */
export interface Part {
  readonly values: readonly unknown[];
  readonly place: (index: number) => string;
}

/** One training row of an exported record. In all parts except `prompt`, the i-th value is that of the i-th id. */
export interface ExportedRow {
  /** The ids before `ids`. Absent if `ids` has the complete row. */
  readonly prompt?: Part;
  readonly ids: Part;
  readonly mask: Part;
  readonly logprobs: Part;
  readonly versions?: Part;
  readonly advantages?: Part;
}

/** The rows and names of a record, as far as they can be read. */
export interface ExportedRecord {
  readonly rows: readonly ExportedRow[];
  readonly reward: unknown;
  readonly group: unknown;
  /** The name of the attempt. Absent if the trainer's form has none. */
  readonly rollout?: unknown;
  /** The trainer's own number of the attempt. Absent if the form has none. */
  readonly number?: unknown;
  /** True at the last row of an attempt. Absent if the form has no such member. */
  readonly isLast?: unknown;
  /** The row's lineage. Absent if the form has none, or if the attempt has one row. */
  readonly lineage?: unknown;
  /** True if this form has a record for each row, unlike the trainer's usual form. */
  readonly isPerRow?: true;
  /** Violations of the row's shape. A missing part is absent from the row. */
  readonly found: readonly Violation[];
}

/** Returns the member of a record at a path such as `extra_fields.uid`, or `undefined`. */
export function memberAt(record: unknown, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), record);
}

/** Returns the list at a path of a record. Adds a violation if there is none. */
export function readPart(record: RawRow, path: string, found: Violation[]): Part {
  const values = memberAt(record, path);
  if (!Array.isArray(values))
    found.push({ rule: "shape", detail: `${path} is missing or no list` });
  return {
    values: Array.isArray(values) ? values : [],
    place: (index) => `${path}[${index}]`,
  };
}

/** Concatenates parts. Each value keeps its path. */
export function joinParts(parts: readonly Part[]): Part {
  const places: { readonly part: Part; readonly index: number }[] = [];
  for (const part of parts) {
    for (const index of part.values.keys()) places.push({ part, index });
  }
  return {
    values: parts.flatMap(({ values }) => values),
    place: (index) => {
      const found = places[index];
      return found === undefined ? `entry ${index}` : found.part.place(found.index);
    },
  };
}

/** Returns a part that was computed from another one, such as a mask from ranges. */
export function derivedPart(values: readonly unknown[], name: string): Part {
  return { values, place: (index) => `${name} at ${index}` };
}

/**
 * Converts a boolean mask value to 0 or 1. Returns other values unchanged, so that a later check
 * finds them.
 */
export function toBit(value: unknown): unknown {
  return typeof value === "boolean" ? Number(value) : value;
}
