import { isBinary } from "../binary.ts";

/** What is copied when it is written: plain objects, lists, Maps, Sets and Dates. */
export function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return true;
  // Also what a tool is given of one, but none of a class of its author's.
  if (value instanceof Map) return value.constructor === Map;
  if (value instanceof Set) return value.constructor === Set;
  if (value instanceof Date) return value.constructor === Date;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What is sealed already, with all that it holds. */
const sealed = new WeakSet();

/** Those that were sealed without what they hold. */
const sealedAlone = new WeakSet();

/** Sealed values that hold binary data, also further in. */
const holdingBinary = new WeakSet();

/** Sealed objects of which a member is worked out whenever it is read. */
const computing = new WeakSet();

/** Whether a member of a plain object is worked out whenever it is read. Takes no time for a sealed one. */
export function hasAccessors(value: object): boolean {
  if (sealed.has(value)) return computing.has(value);
  if (Array.isArray(value) || writersOf(value).length > 0) return false;
  return Object.keys(value).some((key) => accessorOf(value, key) !== undefined);
}

/** How a member is worked out; nothing where it simply is there. */
export function accessorOf(value: object, key: PropertyKey): PropertyDescriptor | undefined {
  const found = Reflect.getOwnPropertyDescriptor(value, key);
  return found?.get === undefined && found?.set === undefined ? undefined : found;
}

/** Whether the value was given to `seal()`, or is held by one that was. */
export function isSealed(value: object): boolean {
  return sealed.has(value);
}

/** Whether it is sealed with all that it holds: a part of a state that others share, or that is over. */
export function isSealedWhole(value: object): boolean {
  return sealed.has(value) && !sealedAlone.has(value);
}

/** Whether a sealed value is binary data, which nobody can freeze, or holds some. */
export function holdsBinary(value: unknown): boolean {
  return isBinary(value) || (typeof value === "object" && holdingBinary.has(value as object));
}

/**
 * Freezes a value with all that it holds, Maps, Sets and Dates among it. A second time costs nothing, so
 * that what many episodes share is gone through once. Binary data and instances of classes stay as they are.
 *
 * @param withKeys - Whether objects that are keys of Maps are frozen as well, as those are that episodes share.
 */
export function seal<Value>(value: Value, withKeys = false): Value {
  const waiting: unknown[] = [value];
  const fresh: object[] = [];
  let isHolding = false;
  while (waiting.length > 0) {
    const next = waiting.pop();
    isHolding ||= holdsBinary(next);
    if (!isPlain(next) || isSealedWhole(next)) continue;
    if (hasAccessors(next)) computing.add(next);
    sealed.add(next);
    sealedAlone.delete(next);
    fresh.push(next);
    for (const [key, held] of membersOf(next)) {
      waiting.push(held);
      if (withKeys && typeof key === "object") waiting.push(key);
    }
    freeze(next);
  }
  if (isHolding) noteHolding(fresh.toReversed());
  return value;
}

/** Those that hold what was found to hold binary data do so too. They mostly come after what they hold. */
function noteHolding(fresh: readonly object[]): void {
  for (let isGrowing = true; isGrowing;) {
    isGrowing = false;
    for (const one of fresh) {
      if (holdingBinary.has(one)) continue;
      if (!membersOf(one).some(([, held]) => holdsBinary(held))) continue;
      holdingBinary.add(one);
      isGrowing = true;
    }
  }
}

/** What a plain value holds, by its keys, but for what is worked out of that. */
export function membersOf(value: object): readonly (readonly [unknown, unknown])[] {
  if (value instanceof Map) return [...value] as [unknown, unknown][];
  if (value instanceof Set) return Array.from(value as Set<unknown>, (held) => [held, held]);
  if (!hasAccessors(value)) return Object.entries(value);
  const keys = Object.keys(value).filter((key) => accessorOf(value, key) === undefined);
  return keys.map((key) => [key, (value as Record<string, unknown>)[key]]);
}

/** Freezes a value without what it holds, where it is no view of another. */
export function sealAlone(value: object): void {
  if (isBinary(value)) return;
  if (isView(value) || sealed.has(value)) return;
  if (hasAccessors(value)) computing.add(value);
  sealed.add(value);
  sealedAlone.add(value);
  freeze(value);
}

function isView(value: object): boolean {
  if (writersOf(value).length === 0) return !Reflect.preventExtensions(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  return ![Map.prototype, Set.prototype, Date.prototype].some((own) => own === prototype);
}

function freeze(value: object): void {
  // One that its author froze takes no members of its own.
  if (Object.isExtensible(value)) {
    for (const method of writersOf(value)) {
      if (method in value) Object.defineProperty(value, method, { value: refuseWrite });
    }
    for (const method of value instanceof Map ? insertingReaders : noWriters) {
      if (method in value) Object.defineProperty(value, method, { value: readOrRefuse });
    }
  }
  Object.freeze(value);
}

const collectionWriters = ["set", "add", "delete", "clear"];
/** What newer versions of JavaScript have: they write only where nothing is to be read. */
const insertingReaders = ["getOrInsert", "getOrInsertComputed"];
const noWriters: readonly string[] = [];
const dateWriters = Object.getOwnPropertyNames(Date.prototype).filter((name) =>
  name.startsWith("set"),
);

function readOrRefuse(this: Map<unknown, unknown>, key: unknown): unknown {
  return this.has(key) ? this.get(key) : refuseWrite();
}

/** The methods that change what is in no members. */
function writersOf(value: object): readonly string[] {
  if (value instanceof Map || value instanceof Set) return collectionWriters;
  return value instanceof Date ? dateWriters : noWriters;
}

/** What a write outside a tool's call meets. */
export function refuseWrite(): never {
  throw new TypeError("Cannot change the state here: it is read only");
}
