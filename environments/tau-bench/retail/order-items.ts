import type { PyNumber } from "../../../src/python/arithmetic.ts";
import { add, subtract } from "../../../src/python/arithmetic.ts";
import { contains } from "../../../src/python/contains.ts";
import { countOf } from "../../../src/python/count.ts";
import { pythonEquals } from "../../../src/python/equals.ts";
import { getItem } from "../../../src/python/get-item.ts";
import { iterate } from "../../../src/python/iterate.ts";
import type { MutableValue } from "../../../src/python/mutable-value.ts";
import { PythonError } from "../../../src/python/python-error.ts";
import { pythonTruthy } from "../../../src/python/truthy.ts";
import type { PyDict, PyValue } from "../../../src/python/value.ts";
import { readRecord } from "../record-table.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** Which items of an order are to become which. The ids are the caller's: they may be anything. */
export interface ItemChange {
  readonly order: PyDict;
  readonly itemIds: PyValue;
  readonly newItemIds: PyValue;
}

/**
 * The first id that is asked for more often than the order holds it; `undefined` where there is none.
 *
 * @throws PythonError where the ids cannot be gone through or counted.
 */
export function findExcessItem(order: PyDict, itemIds: PyValue): PyValue | undefined {
  const ordered = iterate(getItem(order, "items")).map((item) => getItem(item, "item_id"));
  return iterate(itemIds).find((itemId) => countOf(itemIds, itemId) > countOf(ordered, itemId));
}

/** Pairs of old and new ids, as many as the shorter of the two has. */
export function pairItems(itemIds: PyValue, newItemIds: PyValue): (readonly [PyValue, PyValue])[] {
  const replacements = iterate(newItemIds);
  return iterate(itemIds)
    .slice(0, replacements.length)
    .map((itemId, index) => [itemId, replacements[index] as PyValue] as const);
}

/**
 * The first item of the order with the id.
 *
 * @throws PythonError `IndexError` where there is none.
 */
export function firstItem(order: Map<string, MutableValue>, itemId: PyValue): MutableValue;
export function firstItem(order: PyDict, itemId: PyValue): PyValue;
export function firstItem(order: PyDict, itemId: PyValue): PyValue {
  const item = iterate(getItem(order, "items")).find((candidate) =>
    pythonEquals(getItem(candidate, "item_id"), itemId),
  );
  if (item === undefined) throw new PythonError("IndexError", "list index out of range");
  return item;
}

/** The variants of the product that the item is one of, by their item ids. */
export function variantsOf({ products }: RetailDatabase, item: PyValue): PyValue {
  return getItem(readRecord(products, getItem(item, "product_id")), "variants");
}

/** What the new items cost more than the old ones, or the first new id that cannot be had. */
export type PriceDifference =
  | { readonly type: "difference"; readonly amount: PyNumber }
  | { readonly type: "unavailable"; readonly itemId: PyValue };

/**
 * Adds up the price differences, not rounded. No items at all differ by the integer 0.
 *
 * @throws PythonError where an id cannot be looked up.
 */
export function priceDifference(
  database: RetailDatabase,
  { order, itemIds, newItemIds }: ItemChange,
): PriceDifference {
  let amount: PyNumber = 0n;
  for (const [itemId, newItemId] of pairItems(itemIds, newItemIds)) {
    const item = firstItem(order, itemId);
    const variants = variantsOf(database, item);
    if (!contains(variants, newItemId)) return { type: "unavailable", itemId: newItemId };
    const variant = getItem(variants, newItemId);
    if (!pythonTruthy(getItem(variant, "available"))) {
      return { type: "unavailable", itemId: newItemId };
    }
    amount = add(amount, subtract(getItem(variant, "price"), getItem(item, "price")), "+=");
  }
  return { type: "difference", amount };
}
