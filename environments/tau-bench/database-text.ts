import { compareCodePoints } from "../../packages/python-values/src/text/compare-code-points.ts";
import { pythonRepr, reprString } from "../../packages/python-values/src/text/repr.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../packages/python-values/src/value.ts";
import type { Tables } from "./tau-domain.ts";

/**
 * Returns the text of a value that τ-bench hashes: Python's `repr()` of nested tuples. A dictionary becomes its
 * (key, value) pairs sorted by key, a list its elements.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/base.py (`to_hashable`, `consistent_hash`).
 */
export function hashableText(value: PyValue): string {
  if (isPyDict(value)) {
    return tupleText(sortedEntries(value).map(([key, member]) => pairText(key, member)));
  }
  return isPyList(value) ? tupleText(value.map(hashableText)) : pythonRepr(value);
}

/** The text of one (key, value) pair of a dictionary. */
export function pairText(key: string, value: PyValue): string {
  return `(${reprString(key)}, ${hashableText(value)})`;
}

/** True if two databases over the same base have the same text, and so the same τ-bench hash. */
export function sameDatabase(left: Tables, right: Tables): boolean {
  return Object.entries(left).every(([name, table]) => {
    const other = right[name];
    if (other === undefined) return false;
    const ids = new Set([...table.changes.keys(), ...other.changes.keys()]);
    return [...ids].every((id) => sameRecord(table.get(id), other.get(id)));
  });
}

function sameRecord(left: PyDict | undefined, right: PyDict | undefined): boolean {
  if (left === right) return true;
  if (left === undefined || right === undefined) return false;
  return sameText(left, right);
}

/** True if two values have the same text. The first may have any length. */
export function sameText(long: PyValue, short: PyValue): boolean {
  const text = hashableText(short);
  return fits(long, { left: text.length }) && hashableText(long) === text;
}

/** True if a value's text may fit into the remaining characters: each value has at least one. */
function fits(value: PyValue, room: { left: number }): boolean {
  room.left -= typeof value === "string" ? value.length + 2 : 1;
  if (room.left < 0) return false;
  if (!isPyList(value) && !isPyDict(value)) return true;
  for (const member of value.values()) if (!fits(member, room)) return false;
  return true;
}

function sortedEntries(dict: PyDict): (readonly [string, PyValue])[] {
  return [...dict].sort(([left], [right]) => compareCodePoints(left, right));
}

/** The text of a tuple with the given texts as parts. */
export function tupleText(parts: readonly string[]): string {
  return parts.length === 1 ? `(${parts[0]},)` : `(${parts.join(", ")})`;
}
