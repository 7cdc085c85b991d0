import { isPlain } from "./sealed.ts";

/**
 * True if `String()` of an object does not identify it. Maps are compared and printed by the texts
 * of their keys.
 */
export function isNameless(key: unknown): boolean {
  if (typeof key !== "object" || key === null) return false;
  const { toString } = key as { readonly toString?: unknown };
  return typeof toString !== "function" || toString === Object.prototype.toString;
}

/**
 * Refuses an object as a key of a Map in the state. The state replaces an object by a copy when it
 * is written, so a lookup with the original object would fail. Class instances are allowed, because
 * they are never copied.
 *
 * @param isPart - True if the key is a view of an object in the state. Such a key is always
 *   refused.
 * @throws TypeError
 */
export function assertKey(key: unknown, isPart: boolean): void {
  if (!isPart && (!isNameless(key) || !isPlain(key))) return;
  throw new TypeError(
    "Cannot use an object as a key of a Map in the state: expected a text or a number, such as its id",
  );
}
