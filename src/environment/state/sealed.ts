import { isBinary } from "../binary.ts";

/** True for a value that is copied when written: a plain object, list, Map, Set or Date. */
export function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return true;
  // Also true for the view of a Map, but not for a user's subclass.
  if (value instanceof Map) return value.constructor === Map;
  if (value instanceof Set) return value.constructor === Set;
  if (value instanceof Date) return value.constructor === Date;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Values that are sealed with everything in them. */
const sealed = new WeakSet();

/** Values that are sealed without their content. */
const sealedAlone = new WeakSet();

/** Sealed values that contain binary data at any depth. */
const holdingBinary = new WeakSet();

/** Sealed objects with an accessor property. */
const withAccessors = new WeakSet();

/** True if a plain object has an accessor property. Takes no time for a sealed object. */
export function hasAccessors(value: object): boolean {
  if (sealed.has(value)) return withAccessors.has(value);
  if (Array.isArray(value) || writersOf(value).length > 0) return false;
  return Object.keys(value).some((key) => accessorOf(value, key) !== undefined);
}

/** The accessor under a key; `undefined` for a data property. */
export function accessorOf(value: object, key: PropertyKey): PropertyDescriptor | undefined {
  const found = Reflect.getOwnPropertyDescriptor(value, key);
  return found?.get === undefined && found?.set === undefined ? undefined : found;
}

/** True if `seal()` froze the value, alone or as a part of another value, or `sealAlone()` froze it without its content. */
export function isSealed(value: object): boolean {
  return sealed.has(value);
}

/** True if a value is sealed with everything in it: a shared part of a state, or a finished state. */
export function isSealedWhole(value: object): boolean {
  return sealed.has(value) && !sealedAlone.has(value);
}

/** True if a sealed value is or contains binary data, which cannot be frozen. */
export function holdsBinary(value: unknown): boolean {
  return isBinary(value) || (typeof value === "object" && holdingBinary.has(value as object));
}

/**
 * Freezes a value with everything in it, including Maps, Sets and Dates. The second call costs nothing, so a state
 * that many episodes share is walked once. Binary data and class instances are not frozen.
 *
 * @param withKeys - True to freeze objects that are keys of Maps as well, as for a shared state.
 */
export function seal<Value>(value: Value, withKeys = false): Value {
  const waiting: unknown[] = [value];
  const fresh: object[] = [];
  let isHolding = false;
  while (waiting.length > 0) {
    const next = waiting.pop();
    isHolding ||= holdsBinary(next);
    if (!isPlain(next) || isSealedWhole(next)) continue;
    if (hasAccessors(next)) withAccessors.add(next);
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

/** Marks the values that contain a value with binary data. Containers mostly come after their content. */
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

/** The members of a plain value by key, without accessors. */
export function membersOf(value: object): readonly (readonly [unknown, unknown])[] {
  if (value instanceof Map) return [...value] as [unknown, unknown][];
  if (value instanceof Set) return Array.from(value as Set<unknown>, (held) => [held, held]);
  if (!hasAccessors(value)) return Object.entries(value);
  const keys = Object.keys(value).filter((key) => accessorOf(value, key) === undefined);
  return keys.map((key) => [key, (value as Record<string, unknown>)[key]]);
}

/** Freezes a value without its content, unless it is a view. */
export function sealAlone(value: object): void {
  if (isBinary(value)) return;
  if (isView(value) || sealed.has(value)) return;
  if (hasAccessors(value)) withAccessors.add(value);
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
  // A value that its author froze takes no new properties.
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
/** Newer Map methods, which write only if the key is missing. */
const insertingReaders = ["getOrInsert", "getOrInsertComputed"];
const noWriters: readonly string[] = [];
const dateWriters = Object.getOwnPropertyNames(Date.prototype).filter((name) =>
  name.startsWith("set"),
);

function readOrRefuse(this: Map<unknown, unknown>, key: unknown): unknown {
  return this.has(key) ? this.get(key) : refuseWrite();
}

/** The mutating methods of a class that keeps its content outside of properties. */
function writersOf(value: object): readonly string[] {
  if (value instanceof Map || value instanceof Set) return collectionWriters;
  return value instanceof Date ? dateWriters : noWriters;
}

/**
 * Throws, because the state can be changed only during a tool's call.
 * @throws TypeError
 */
export function refuseWrite(): never {
  throw new TypeError("Cannot change the state here: it is read only");
}
