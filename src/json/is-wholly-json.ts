import { whyNotJson } from "./why-not-json.ts";

/**
 * True if a value is unchanged after it is written as JSON and read again, apart from `undefined` members of
 * objects.
 */
export function isWhollyJson(value: unknown): boolean {
  return whyNotJson(value) === undefined && isPlainJson(value);
}

/** Returns the result of `isWhollyJson()` for a value that `JSON.stringify()` can write. */
function isPlainJson(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return hasItemsOnly(value) && value.every(isPlainJson);
  const kind: unknown = Object.getPrototypeOf(value);
  if (kind !== Object.prototype && kind !== null) return false;
  return Object.values(value).every((member) => member === undefined || isPlainJson(member));
}

/** True if a list has no holes and no extra properties, such as those of a `RegExp` match. */
function hasItemsOnly(list: readonly unknown[]): boolean {
  const keys = Object.keys(list);
  return keys.length === list.length && keys.every((key, index) => key === String(index));
}
