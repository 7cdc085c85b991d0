import { whyNotJson } from "./why-not-json.ts";

/** Whether a value is the same when it has been written as JSON and read; members without a value may go. */
export function isWhollyJson(value: unknown): boolean {
  return whyNotJson(value) === undefined && isPlainJson(value);
}

/** The same of a value that can be written, such as one that does not hold itself. */
export function isPlainJson(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return value.every(isPlainJson);
  const kind: unknown = Object.getPrototypeOf(value);
  if (kind !== Object.prototype && kind !== null) return false;
  return Object.values(value).every((member) => member === undefined || isPlainJson(member));
}
