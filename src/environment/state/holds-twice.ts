import { isPlain, membersOf } from "./sealed.ts";

/** Sealed values in which nothing is held twice, each with what it was found in first. */
const trees = new WeakMap<object, object | undefined>();
/** What such a value holds that had been found in another before. */
const borrowed = new WeakMap<object, object[]>();
/** Sealed values of states in which something is held twice. */
const graphs = new WeakSet();

/**
 * Whether something that can be changed is held at two places of a sealed value: who writes it in one place
 * means the other as well. What was looked at before is not gone through again.
 */
export function holdsTwice(value: object): boolean {
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
    // What a Set holds is only read.
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

/** Remembers that a value was found once more, in all that it is now held by. */
function noteBorrowed(known: object, holder: object | undefined): void {
  const all = [known, ...(borrowed.get(known) ?? [])];
  for (let one = holder; one !== undefined; one = trees.get(one)) {
    const others = borrowed.get(one);
    if (others === undefined) borrowed.set(one, [...all]);
    else for (const other of all) others.push(other);
  }
}

/** Whether one of the trees holds another, or something that another holds as well. */
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
