import { attributeError } from "../../packages/python-values/src/attribute-error.ts";
import type { MutableDict, MutableValue } from "../../packages/python-values/src/mutable-value.ts";

/**
 * Returns the list that a method such as `append` will change.
 *
 * @throws PythonError `AttributeError` if the value is not a list.
 */
export function listForMethod(value: MutableValue, method: string): MutableValue[] {
  if (!Array.isArray(value)) throw attributeError(value, method);
  return value;
}

/** A new dictionary with members in the given order. */
export function dict(members: Readonly<Record<string, MutableValue>>): MutableDict {
  return new Map(Object.entries(members));
}
