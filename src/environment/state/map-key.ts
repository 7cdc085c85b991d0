import { isPlain } from "./sealed.ts";

/** Whether an object says nothing as a name: what is shown and compared of a Map goes by the texts of its keys. */
export function isNameless(key: unknown): boolean {
  if (typeof key !== "object" || key === null) return false;
  const { toString } = key as { readonly toString?: unknown };
  return typeof toString !== "function" || toString === Object.prototype.toString;
}

/**
 * Refuses an object as a key: what is a part of the state is another object where it was written, in a call and in
 * `score()`. An instance of a class is passed as it is.
 *
 * @param isPart - Whether it is what a tool was given in the place of a part, which is not found by a text either.
 * @throws TypeError
 */
export function assertKey(key: unknown, isPart: boolean): void {
  if (!isPart && (!isNameless(key) || !isPlain(key))) return;
  throw new TypeError(
    "Cannot take an object for a key of a Map in the state: expected a text or a number, such as its id",
  );
}
