import { isPlain, membersOf } from "./sealed.ts";

/**
 * Sealed values that reference no object twice, each with the value that contains it. `undefined`
 * for the outermost value.
 */
const trees = new WeakMap<object, object | undefined>();
/** For each such value, the objects inside it that were first found in another value. */
const borrowed = new WeakMap<object, object[]>();
/** Sealed values that reference an object twice. */
const graphs = new WeakSet();

/**
 * True if a sealed value references a mutable object twice. A write through one reference must then
 * be visible through the other. Remembers the result of each value.
 */
export function hasSharedReference(value: object): boolean {
  const fresh = new Map<object, object | undefined>();
  const known = new Map<object, object | undefined>();
  const held: unknown[] = [value];
  const holders: (object | undefined)[] = [undefined];
  while (held.length > 0) {
    const next = held.pop();
    const holder = holders.pop();
    if (!isPlain(next)) continue;
    if (fresh.has(next) || known.has(next) || graphs.has(next)) return noteGraph(fresh);
    if (trees.has(next)) {
      known.set(next, holder);
      continue;
    }
    fresh.set(next, holder);
    // Members of a Set are read-only.
    if (next instanceof Set) continue;
    for (const [, member] of membersOf(next)) {
      if (typeof member !== "object" || member === null) continue;
      held.push(member);
      holders.push(next);
    }
  }
  if (overlap([...known.keys()])) return noteGraph(fresh);
  for (const [one, holder] of fresh) trees.set(one, holder);
  for (const [one, holder] of known) noteBorrowed(one, holder);
  return false;
}

function noteGraph(fresh: ReadonlyMap<object, unknown>): true {
  for (const one of fresh.keys()) graphs.add(one);
  return true;
}

/** Records that an object which another value already contains was found in `holder`, too. */
function noteBorrowed(known: object, holder: object | undefined): void {
  const all = [known, ...(borrowed.get(known) ?? [])];
  for (let one = holder; one !== undefined; one = trees.get(one)) {
    const others = borrowed.get(one);
    if (others === undefined) borrowed.set(one, [...all]);
    else for (const other of all) others.push(other);
  }
}

/** True if one of the values contains another, or if two of them share an object. */
function overlap(known: readonly object[]): boolean {
  if (known.length < 2) return false;
  const all = new Set<object>();
  for (const tree of known) {
    for (const one of [tree, ...(borrowed.get(tree) ?? [])]) {
      if (all.has(one)) return true;
      all.add(one);
    }
  }
  for (const tree of all) {
    for (let holder = trees.get(tree); holder !== undefined; holder = trees.get(holder)) {
      if (all.has(holder)) return true;
    }
  }
  return false;
}
