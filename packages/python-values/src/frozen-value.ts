import { ownBug } from "./support/errors.ts";
import type { PyDict, PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/**
 * A deep copy that cannot be changed: lists are frozen, and changing a dictionary throws an InvariantError. Use it
 * for data that many episodes share.
 */
function freezeValue(value: PyValue): PyValue {
  if (isPyList(value)) return Object.freeze(value.map(freezeValue));
  return isPyDict(value) ? freezeDict(value) : value;
}

/** A deep copy of a dictionary that cannot be changed, as by `freezeValue()`. */
export function freezeDict(dict: PyDict): PyDict {
  return new FrozenDict(dict);
}

class FrozenDict extends Map<string, PyValue> {
  constructor(entries: PyDict) {
    super();
    for (const [key, member] of entries) super.set(key, freezeValue(member));
  }

  override set(key: string): never {
    throw ownBug(`Cannot set ${JSON.stringify(key)} of shared data: it is frozen`);
  }

  override delete(key: string): never {
    throw ownBug(`Cannot delete ${JSON.stringify(key)} of shared data: it is frozen`);
  }

  override clear(): never {
    throw ownBug("Cannot clear shared data: it is frozen");
  }
}
