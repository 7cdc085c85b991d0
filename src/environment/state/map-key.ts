import { isPlain } from "./sealed.ts";

/** True if an object has no text of its own as a key. Maps are shown and compared by the texts of their keys. */
export function isNameless(key: unknown): boolean {
  if (typeof key !== "object" || key === null) return false;
  const { toString } = key as { readonly toString?: unknown };
  return typeof toString !== "function" || toString === Object.prototype.toString;
}

/**
 * Refuses an object as a key: a part of the state becomes another object when it is written, in a call and in
 * `score()`. Class instances are allowed, since they are passed as they are.
 *
 * @param isPart - True if the key is a view of a part of the state, whose text does not find it either.
 * @throws TypeError
 */
export function assertKey(key: unknown, isPart: boolean): void {
  if (!isPart && (!isNameless(key) || !isPlain(key))) return;
  throw new TypeError(
    "Cannot use an object as a key of a Map in the state: expected a text or a number, such as its id",
  );
}
