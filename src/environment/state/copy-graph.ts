import { isBinary, type BinaryCopies } from "../binary.ts";
import { accessorOf, hasAccessors, isPlain, isSealed, membersOf } from "./sealed.ts";
import { emptyAs, isPlaceIn, isSparse } from "./sparse-list.ts";

/** Options of `copyGraph()`. */
export interface CopyOptions {
  /** Earlier copies by original; new copies are added. */
  readonly copies: Map<object, object>;
  /** Registered binary data, all of which will be copied (see `noteBinaries()`). */
  readonly binaries: BinaryCopies;
  /** Returns the object that a view stands for, or the object itself. */
  readonly read: (held: object) => object;
  /** True if an object is kept rather than copied. */
  readonly isKept: (held: object) => boolean;
  readonly onCopy: (held: object, copy: object) => void;
  /** Returns the value that replaces a member of a Set. */
  readonly takeMember: (held: unknown) => unknown;
}

/**
 * Copies a value with everything in it. An object that is referenced twice stays one object in the copy. Class
 * instances are not copied.
 */
export function copyGraph<Value>(
  value: Value,
  { copies, binaries, read, isKept, onCopy, takeMember }: CopyOptions,
): Value {
  const waiting: (readonly [object, object])[] = [];
  const take = (given: unknown): unknown => {
    if (!isPlain(given) && !isBinary(given)) return given;
    const held = read(given);
    if (isKept(held)) return held;
    const existing = copies.get(held);
    if (existing !== undefined) return existing;
    const isBytes = isBinary(held);
    const copy = isBytes ? binaries.copy(held) : copyOf(held);
    copies.set(held, copy);
    onCopy(held, copy);
    if (!isBytes) waiting.push([held, copy]);
    return copy;
  };
  const taken = take(value);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [original, copy] = next;
    if (copy instanceof Set) {
      refillSet(copy, takeMember);
      continue;
    }
    const isComputing = withAccessors.has(copy);
    for (const [key, held] of membersOf(original)) {
      if (isComputing && accessorOf(copy, key as string) !== undefined) continue;
      const own = take(held);
      if (own !== held) putMember(copy, key, own);
    }
  }
  return taken as Value;
}

/** Registers all binary data that will be copied, so that views that share bytes also share them in the copy. */
export function noteBinaries(
  values: readonly unknown[],
  { copies, binaries, read, isKept }: Pick<CopyOptions, "copies" | "binaries" | "read" | "isKept">,
): void {
  const waiting = [...values];
  const seen = new Set<object>();
  while (waiting.length > 0) {
    const given = waiting.pop();
    if (!isPlain(given) && !isBinary(given)) continue;
    const held = read(given);
    if (seen.has(held) || copies.has(held) || isKept(held)) continue;
    seen.add(held);
    if (isBinary(held)) binaries.note(held);
    else for (const [, member] of membersOf(held)) waiting.push(member);
  }
}

/** Replaces each object in a Set by the result of `take`. */
function refillSet(raw: Set<unknown>, take: (held: unknown) => unknown): void {
  const held = [...raw];
  if (!held.some((one) => isPlain(one) || isBinary(one))) return;
  raw.clear();
  for (const one of held) raw.add(take(one));
}

/** A shallow copy of a plain value. Accessors (getters) stay accessors. */
export function copyOf(base: object): object {
  if (Array.isArray(base)) return copyOfList(base);
  if (base instanceof Map) return new Map(base);
  if (base instanceof Set) return new Set(base);
  if (base instanceof Date) return new Date(base.getTime());
  const prototype = Object.getPrototypeOf(base) as object | null;
  if (!hasAccessors(base)) return Object.setPrototypeOf({ ...base }, prototype) as object;
  const copy = Object.create(prototype) as object;
  for (const key of Reflect.ownKeys(base)) copyMember(copy, key, base);
  return copy;
}

function copyMember(copy: object, key: PropertyKey, base: object): "data" | "accessor" {
  const accessor = accessorOf(base, key);
  if (accessor === undefined) {
    putMember(copy, key, (base as Record<PropertyKey, unknown>)[key]);
    return "data";
  }
  Object.defineProperty(copy, key, { ...accessor, configurable: true });
  return "accessor";
}

/** Copies an instance of a list class, with its extra properties. */
function copyOfList(base: readonly unknown[]): object {
  const prototype = Object.getPrototypeOf(base) as object | null;
  if (prototype === Array.prototype) return copyOfPlainList(base);
  const copy = sliceOfClass(base, prototype);
  for (const key of Reflect.ownKeys(base)) {
    if (key === "length") continue;
    const own = Reflect.getOwnPropertyDescriptor(base, key)!;
    const isData = "value" in own;
    if (!isData || typeof own.value === "function") {
      // The constructor may already have set an accessor or a method. It belongs to the copy, so it
      // stays.
      if (Object.hasOwn(copy, key)) continue;
      refuseOwn(base, String(key));
    }
    Object.defineProperty(copy, key, {
      ...own,
      ...(isData && { writable: true }),
      configurable: true,
    });
  }
  return copy;
}

/** Copies a list with its holes and its extra properties, such as the columns of a table. */
function copyOfPlainList(base: readonly unknown[]): unknown[] {
  const isFar = isSparse(base);
  const copy = isFar ? emptyAs(base) : base.slice();
  for (const name of isFar ? Object.keys(base) : namesBeside(base)) {
    if (copyMember(copy, name, base) === "accessor") withAccessors.add(copy);
  }
  return copy;
}

/** Copies of lists that have an accessor property. */
const withAccessors = new WeakSet<object>();

/** Cached property names of long lists: a state's lists are copied for each episode that writes them. */
const cachedNames = new WeakMap<object, readonly string[]>();

const longestUncached = 64;

/** The names of a list's properties that are not items. */
function namesBeside(list: readonly unknown[]): readonly string[] {
  // A list that is not frozen may get more properties.
  if (list.length <= longestUncached || !isSealed(list)) return findNamesBeside(list);
  let names = cachedNames.get(list);
  if (names === undefined) cachedNames.set(list, (names = findNamesBeside(list)));
  return names;
}

function findNamesBeside(list: readonly unknown[]): readonly string[] {
  const keys = Object.keys(list);
  // Extra properties come after the items; holes make the items fewer than the length.
  return keys.slice(keys.findLastIndex((key) => isPlaceIn(list, key)) + 1);
}

/**
 * Refuses to copy a list instance with own functions.
 *
 * @throws TypeError if an instance of a list class has an own function, which would still work on the original list
 * in the copy.
 */
function refuseOwn(list: readonly unknown[], name: string): never {
  const { constructor: maker } = list as { readonly constructor?: { readonly name?: string } };
  throw new TypeError(
    `Cannot copy a list of ${maker?.name ?? "a class"} of the state, as it is written: its own ${name} works on the ` +
      `list that it was made with, expected a method of the class (${name}() { … })`,
  );
}

/** Returns a list of the same class and length, made by its constructor or, if that takes parameters, without it. */
function sliceOfClass(base: readonly unknown[], prototype: object | null): unknown[] {
  // Such a constructor would receive the length as its first parameter.
  const { constructor: maker } = base as { readonly constructor?: { readonly length?: number } };
  if (maker?.length === 0) {
    try {
      const copy: unknown = base.slice();
      const isLike = Object.getPrototypeOf(copy) === prototype && Array.isArray(copy);
      if (isLike && copy.length === base.length) return copy;
    } catch {
      // The list is made below.
    }
  }
  return Object.setPrototypeOf(emptyAs(base), prototype) as unknown[];
}

/** The own property of an object under a key, or the value of a Map under a key. */
export function memberOf(raw: object, key: unknown): unknown {
  if (raw instanceof Map) return raw.get(key);
  const name = key as string;
  return Object.hasOwn(raw, name) ? (raw as Record<string, unknown>)[name] : undefined;
}

/** Sets a member, including one with a name such as `__proto__`. */
export function putMember(raw: object, key: unknown, value: unknown): void {
  if (raw instanceof Map) raw.set(key, value);
  else if (key !== "__proto__") (raw as Record<PropertyKey, unknown>)[key as string] = value;
  else {
    const property = { value, enumerable: true, writable: true, configurable: true };
    Object.defineProperty(raw, key, property);
  }
}
