import { isColumnPart, type ColumnPart, type ColumnParts } from "../../columns/column-part.ts";
import { columnNames, type ColumnName } from "../../columns/column-specs.ts";
import { findMembers } from "../../json/json-members.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { isObject } from "../../values/is-object.ts";

/**
 * Reads the side columns' parts of a training row. Leaves out values that are not parts; `turnwright verify` names such
 * faults.
 *
 * @param columns - `columns` of the row. Any value.
 * @returns `undefined` if the row has no columns.
 */
export function readParts(columns: unknown): ColumnParts | undefined {
  if (!isObject(columns)) return undefined;
  const found: Partial<Record<ColumnName, readonly ColumnPart[]>> = {};
  for (const name of columnNames) {
    const parts = columns[name];
    if (Array.isArray(parts)) found[name] = (parts as readonly unknown[]).filter(isColumnPart);
  }
  return found;
}

/** Reads the side columns' parts in a line of `samples.jsonl`, without parsing its other members. */
export function readPartsOfLine(line: Buffer): ColumnParts | undefined {
  const [start, end] = findMembers(line)?.members.get("columns") ?? [0, 0];
  return readParts(parseJsonText(line.toString("utf8", start, end)));
}
