import { isObject } from "../values/is-object.ts";
import { isColumnPart } from "../columns/column-part.ts";
import {
  isColumnName,
  isOfAllTokens,
  namesOf,
  type ColumnName,
  type ColumnSpecs,
} from "../columns/column-specs.ts";
import type { SampleParts, TurnPart } from "./sample-parts.ts";
import { quote, type Violation } from "./violation.ts";

/** Checks the columns that a row names: their names, and the tokens that their parts cover. Reads no bytes. */
export function checkColumns(
  { row, ids, turns }: SampleParts,
  specs: ColumnSpecs | undefined,
): Violation[] {
  const { columns } = row;
  if (columns === undefined) {
    const isTrained = turns?.some((turn) => turn !== undefined && turn.end > turn.start) ?? false;
    if (specs === undefined || namesOf(specs).length === 0 || !isTrained) return [];
    return [broken(`the row has no columns, and its run has ${namesOf(specs).join(", ")}`)];
  }
  if (!isObject(columns)) return [broken(`columns is ${quote(columns)}, expected an object`)];
  if (ids === undefined || turns === undefined) return [];
  const wanted = specs === undefined ? undefined : namesOf(specs);
  const found: Violation[] = [];
  for (const name of Object.keys(columns)) {
    if (!isColumnName(name) || (wanted !== undefined && !wanted.includes(name))) {
      found.push(broken(`columns has ${quote(name)}, which its run does not have`));
      continue;
    }
    const fault = findColumnFault(name, columns[name], { tokenCount: ids.length, turns });
    if (fault !== undefined) found.push(broken(fault));
  }
  for (const name of wanted ?? []) {
    if (columns[name] === undefined) found.push(broken(`columns has no ${name}`));
  }
  return found;
}

function broken(detail: string): Violation {
  return { rule: "columns", detail };
}

interface RowExtent {
  readonly tokenCount: number;
  readonly turns: readonly (TurnPart | undefined)[];
}

function findColumnFault(name: ColumnName, parts: unknown, row: RowExtent): string | undefined {
  if (!Array.isArray(parts)) return `columns.${name} is ${quote(parts)}, expected a list of parts`;
  const wrong = (parts as unknown[]).findIndex((part) => !isColumnPart(part));
  if (wrong !== -1) return `columns.${name}[${wrong}] is ${quote(parts[wrong])}, expected a part`;
  const places = parts as readonly { readonly from: number; readonly rows: number }[];
  return isOfAllTokens(name) ? findGap(name, places, row) : findUncovered(name, places, row);
}

/** Finds the first missing row of a column with a row for each computed token. */
function findGap(
  name: ColumnName,
  parts: readonly { readonly from: number; readonly rows: number }[],
  { tokenCount, turns }: RowExtent,
): string | undefined {
  let next = 0;
  for (const { from, rows } of parts) {
    if (from !== next) return `${name} has rows up to token ${next}, and continues at ${from}`;
    next += rows;
  }
  const lastTrained = turns.reduce((end, turn) => Math.max(end, turn?.end ?? 0), 0) - 1;
  if (next < lastTrained) return `${name} has ${next} rows, and token ${lastTrained} is trained`;
  if (next > tokenCount - 1) return `${name} has ${next} rows for ${tokenCount} tokens`;
  return undefined;
}

/** Finds the first trained token without a row, in a column with a row for each sampled token. */
function findUncovered(
  name: ColumnName,
  parts: readonly { readonly from: number; readonly rows: number }[],
  { turns }: RowExtent,
): string | undefined {
  let index = 0;
  let end = 0;
  for (const turn of turns) {
    if (turn === undefined) continue;
    let next = turn.start;
    for (; index < parts.length && next < turn.end; index++) {
      const { from, rows } = parts[index]!;
      if (from !== next) return `${name} has a part at token ${from}, expected one at ${next}`;
      next += rows;
      end = next;
    }
    // A stop id that left the row has a row of its own.
    const mayEnd = turn["droppedStopId"] === undefined ? turn.end : turn.end + 1;
    if (next < turn.end || next > mayEnd) {
      return `${name} of the turn at token ${turn.start} ends at ${next}, expected ${mayEnd}`;
    }
  }
  if (index === parts.length) return undefined;
  return `${name} has a part at token ${parts[index]!.from}, after the last turn's end ${end}`;
}
