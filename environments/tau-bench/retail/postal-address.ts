import type { MutableDict } from "../../../packages/python-values/src/mutable-value.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";

/** The parts of a postal address, in the order in which the original's tools take and store them. */
export const addressParts = ["address1", "address2", "city", "state", "country", "zip"] as const;

/** The address as the original stores it: the given values, in its own order. */
export function postalAddress(
  values: Readonly<Record<(typeof addressParts)[number], PyValue>>,
): MutableDict {
  return new Map(addressParts.map((part) => [part, copyValue(values[part])]));
}
