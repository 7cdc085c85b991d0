import { isDeepStrictEqual } from "node:util";

/**
 * Whether two values are equal in depth, as `isDeepStrictEqual()` has it; functions are where their text is
 * the same, for whoever makes a value anew makes its functions anew.
 */
export function isAlike(one: unknown, other: unknown): boolean {
  return compare(one, other, new Map());
}

/** @param open - What each value is being compared with: one that holds itself is like another that does. */
function compare(one: unknown, other: unknown, open: Map<object, object>): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one === "function" && typeof other === "function") {
    return String(one) === String(other);
  }
  if (!isObject(one) || !isObject(other)) return false;
  if (open.get(one) === other) return true;
  open.set(one, other);
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Map && other instanceof Map) {
    return one.size === other.size && compare([...one], [...other], open);
  }
  const names = Reflect.ownKeys(one);
  if (names.length !== Reflect.ownKeys(other).length) return false;
  if (names.length === 0 || !isPlain(one)) return isDeepStrictEqual(one, other);
  return names.every((name) => name in other && compare(one[name], other[name], open));
}

function isObject(value: unknown): value is Readonly<Record<string | symbol, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Whether its members are all that there is of it. */
function isPlain(value: object): boolean {
  const kind: unknown = Object.getPrototypeOf(value);
  return kind === Object.prototype || kind === null || Array.isArray(value);
}
