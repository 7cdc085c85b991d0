import { isShareOver, takeTurn } from "../async/take-turn.ts";
import { isObject } from "../values/is-object.ts";
import { hashColumnBytes } from "./column-part.ts";
import {
  findSizeProblem,
  type CheckedPart,
  type ColumnProblem,
  type ColumnsWanted,
  type PausingCheck,
} from "./column-problem.ts";
import { isOfAllTokens, namesOf, type ColumnName } from "./column-specs.ts";
import { checkExperts } from "./check-experts.ts";
import { checkRagged } from "./check-ragged.ts";

/** Bytes that passed the check when they arrived. */
const checkedBytes = new WeakSet<Uint8Array>();

/** Notes that a part's bytes passed the check, so that a later check of the same bytes reads only the part's place. */
export function markChecked(bytes: Uint8Array): void {
  checkedBytes.add(bytes);
}

/** True if the bytes passed the check when they arrived. Their engine does not change them later. */
export function isChecked(bytes: Uint8Array): boolean {
  return checkedBytes.has(bytes);
}

/**
 * Finds the first problem of a generation's columns: a missing or additional column, parts that are not those of the
 * request, and values that no engine returns. Assumes nothing about their shape, because users write engines too.
 */
export function findColumnProblem(
  columns: unknown,
  wanted: ColumnsWanted | undefined,
): ColumnProblem | undefined {
  const check = checkColumns(columns, wanted);
  for (;;) {
    const step = check.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Finds the first problem of a part's values, and lets other work run in between. Marks bytes without a problem as
 * checked: `findColumnProblem()` then reads only the part's place.
 */
export async function findValueProblem(
  name: ColumnName,
  part: CheckedPart,
  wanted: ColumnsWanted,
): Promise<ColumnProblem | undefined> {
  const check = checkValues(name, part, wanted);
  for (;;) {
    if (isShareOver()) await takeTurn();
    const step = check.next();
    if (step.done !== true) continue;
    if (step.value === undefined) markChecked(part.bytes);
    return step.value;
  }
}

/** Returns the first index of a column's rows in the training row, and the index after the last. */
export function spanOf(
  name: ColumnName,
  { knownRows, promptLength, sampledIds }: Omit<ColumnsWanted, "specs">,
): { readonly first: number; readonly end: number } {
  const end = promptLength + sampledIds.length;
  return isOfAllTokens(name) ? { first: knownRows, end: end - 1 } : { first: promptLength, end };
}

function* checkColumns(columns: unknown, wanted: ColumnsWanted | undefined): PausingCheck {
  // A turn that was cut short before its first id has no rows.
  const names = wanted === undefined || wanted.sampledIds.length === 0 ? [] : namesOf(wanted.specs);
  if (columns === undefined && names.length === 0) return undefined;
  if (!isObject(columns)) {
    return { problem: `columns is ${shown(columns)}`, expected: `columns ${names.join(", ")}` };
  }
  const additional = Object.keys(columns).find(
    (name) => !names.includes(name as ColumnName) && !isEmptyList(columns[name]),
  );
  if (additional !== undefined) {
    return { problem: `columns has ${additional}`, expected: "only columns that were requested" };
  }
  for (const name of names) {
    const problem = yield* checkColumn(name, columns[name], wanted!);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function* checkColumn(name: ColumnName, parts: unknown, wanted: ColumnsWanted): PausingCheck {
  if (!Array.isArray(parts)) {
    return { problem: `column ${name} is ${shown(parts)}`, expected: "its parts" };
  }
  const { first, end } = spanOf(name, wanted);
  let place = first;
  for (const [index, part] of (parts as unknown[]).entries()) {
    const problem = findPartProblem(part, { place, at: `columns.${name}[${index}]` });
    if (problem !== undefined) return problem;
    const { rows, bytes, hash } = part as { rows: number; bytes: Uint8Array; hash: string };
    if (place + rows > end) return wrongEnd(name, { first, end, found: place + rows });
    if (!isChecked(bytes)) {
      const wrong = yield* checkValues(name, { rows, bytes, start: place - first }, wanted);
      if (wrong !== undefined) return wrong;
      if (hashColumnBytes(bytes) !== hash) {
        const at = `columns.${name}[${index}]`;
        return { problem: `${at}.hash is not that of its bytes`, expected: "the bytes' hash" };
      }
    }
    place += rows;
  }
  return place === end ? undefined : wrongEnd(name, { first, end, found: place });
}

function wrongEnd(
  name: ColumnName,
  { first, end, found }: { first: number; end: number; found: number },
): ColumnProblem {
  const problem = `column ${name} has ${found - first} rows from token ${first} on`;
  return { problem, expected: `${end - first}, to token ${end - 1}` };
}

function findPartProblem(
  part: unknown,
  { place, at }: { place: number; at: string },
): ColumnProblem | undefined {
  const { from, rows, policyVersion, size, hash, bytes } = isObject(part) ? part : {};
  if (from !== place) {
    return { problem: `${at}.from is ${shown(from)}`, expected: `${place}, without a gap` };
  }
  if (!Number.isSafeInteger(rows) || (rows as number) < 1) {
    return { problem: `${at}.rows is ${shown(rows)}`, expected: "a count of at least 1" };
  }
  if (typeof policyVersion !== "string" || typeof hash !== "string") {
    return { problem: `${at} is ${shown(part)}`, expected: "a policy version and a hash" };
  }
  if (!(bytes instanceof Uint8Array)) {
    return { problem: `${at} has no bytes`, expected: "the rows' bytes" };
  }
  if (size === bytes.length) return undefined;
  return { problem: `${at}.size is ${shown(size)}`, expected: `${bytes.length}, its bytes` };
}

/** Checks the values of a part. */
function* checkValues(name: ColumnName, part: CheckedPart, wanted: ColumnsWanted): PausingCheck {
  const { specs } = wanted;
  switch (name) {
    case "routedExperts":
      return yield* checkExperts(part, specs.routedExperts!);
    case "indexerTopK": {
      // No server with this column could be recorded, so its positions are not checked.
      const { layerCount, perToken } = specs.indexerTopK!;
      return findSizeProblem(name, part, layerCount * perToken * 4);
    }
    case "keptTokens":
    case "topLogprobs":
      return yield* checkRagged(name, part, wanted);
  }
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  if (typeof value === "string") return JSON.stringify(value.slice(0, 40));
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return value === null ? "null" : `a value of type ${typeof value}`;
}
