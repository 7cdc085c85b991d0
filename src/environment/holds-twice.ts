import { isPlain, membersOf } from "./sealed.ts";

/** Sealed values in which nothing is held twice, each with what it was found in first. */
const trees = new WeakMap<object, object | undefined>();
/** Sealed values of states in which something is. */
const graphs = new WeakSet();

/**
 * Whether something that can be changed is held at two places of a sealed value: who writes it in one place
 * means the other as well. What was looked at before is not gone through again.
 */
export function holdsTwice(value: object): boolean {
  const seen = new Set<object>();
  const fresh: (readonly [object, object | undefined])[] = [];
  const known: object[] = [];
  const waiting: [unknown, object | undefined][] = [[value, undefined]];
  let isTwice = false;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [held, holder] = next;
    if (!isPlain(held)) continue;
    isTwice ||= seen.has(held) || graphs.has(held);
    if (seen.has(held)) continue;
    seen.add(held);
    if (trees.has(held)) known.push(held);
    else {
      fresh.push([held, holder]);
      // What a Set holds is only read.
      if (held instanceof Set) continue;
      for (const [, member] of membersOf(held)) waiting.push([member, held]);
    }
  }
  isTwice ||= known.some((tree) => isWithin(tree, seen));
  for (const [held, holder] of fresh) {
    if (isTwice) graphs.add(held);
    else trees.set(held, holder);
  }
  return isTwice;
}

/** Whether what a tree was found in first is there as well, and the tree once more with it. */
function isWithin(tree: object, seen: ReadonlySet<object>): boolean {
  for (let holder = trees.get(tree); holder !== undefined; holder = trees.get(holder)) {
    if (seen.has(holder)) return true;
  }
  return false;
}
