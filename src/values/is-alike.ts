import { isDeepStrictEqual } from "node:util";

/**
 * True if two values are deeply equal, like `isDeepStrictEqual()`, except that functions are equal if their source
 * text is: code that makes a value again also makes its functions again.
 */
export function isAlike(one: unknown, other: unknown): boolean {
  return compare(one, other, new Map());
}

/**
 * Compares two values at any depth.
 *
 * @param open - The value that each value is being compared with: a circular value equals another circular one.
 */
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
  if (one instanceof Set && other instanceof Set) {
    const isAlikeInOrder = one.size === other.size && compare([...one], [...other], open);
    return isAlikeInOrder || isDeepStrictEqual(one, other);
  }
  const names = Reflect.ownKeys(one);
  if (names.length !== Reflect.ownKeys(other).length) return false;
  if (names.length === 0 || !isPlain(one)) return isDeepStrictEqual(one, other);
  return names.every((name) => name in other && compare(one[name], other[name], open));
}

function isObject(value: unknown): value is Readonly<Record<string | symbol, unknown>> {
  return typeof value === "object" && value !== null;
}

/** True if an object's members are all of its content, which is unknown for instances of foreign classes. */
function isPlain(value: object): boolean {
  return Array.isArray(value) || Object.prototype.toString.call(value) === "[object Object]";
}
