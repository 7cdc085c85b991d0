import { isPyDict, isPyList, type PyValue } from "../../../../python-values/src/index.ts";

/** True if the value contains neither NaN nor an infinity, at any depth. */
export function isFiniteJson(value: PyValue): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (isPyList(value)) return value.every(isFiniteJson);
  return !isPyDict(value) || [...value.values()].every(isFiniteJson);
}
