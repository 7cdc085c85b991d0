import { isObject } from "../values/is-object.ts";
import { isColumnPart } from "./column-part.ts";
import type { ColumnProblem } from "./column-problem.ts";
import { isColumnName, isOfAllTokens } from "./column-specs.ts";

/**
 * Finds the first problem of a generation's columns that were read from a file, without their bytes: an unknown column,
 * something that is no part, a gap, or another number of rows than sampled tokens.
 */
export function findRecordedColumnProblem(
  columns: unknown,
  sampledCount: number,
): ColumnProblem | undefined {
  if (columns === undefined) return undefined;
  if (!isObject(columns)) return { problem: "columns is no object", expected: "columns" };
  for (const [name, parts] of Object.entries(columns)) {
    if (!isColumnName(name)) return { problem: `columns has ${name}`, expected: "known columns" };
    if (!Array.isArray(parts) || !parts.every(isColumnPart)) {
      return { problem: `column ${name} is no list of parts`, expected: "its parts" };
    }
    let next = parts[0]?.from ?? 0;
    for (const { from, rows } of parts) {
      if (from !== next) {
        return { problem: `column ${name} has a part at ${from}`, expected: `one at ${next}` };
      }
      next += rows;
    }
    const rows = next - (parts[0]?.from ?? 0);
    if (!isOfAllTokens(name) && rows !== sampledCount) {
      return { problem: `column ${name} has ${rows} rows`, expected: `${sampledCount}` };
    }
  }
  return undefined;
}
