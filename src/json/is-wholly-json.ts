import { whyNotJson } from "./why-not-json.ts";

/** Whether a value is the same when it has been written as JSON and read; members of objects without a value may go. */
export function isWhollyJson(value: unknown): boolean {
  return whyNotJson(value) === undefined && isPlainJson(value);
}

/** The same of a value that can be written, such as one that does not hold itself. */
function isPlainJson(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return hasItemsOnly(value) && value.every(isPlainJson);
  const kind: unknown = Object.getPrototypeOf(value);
  if (kind !== Object.prototype && kind !== null) return false;
  return Object.values(value).every((member) => member === undefined || isPlainJson(member));
}

/** Whether a list has all its items, and no members beside them, as what a `RegExp` matched has. */
function hasItemsOnly(list: readonly unknown[]): boolean {
  const keys = Object.keys(list);
  return keys.length === list.length && keys.every((key, index) => key === String(index));
}
