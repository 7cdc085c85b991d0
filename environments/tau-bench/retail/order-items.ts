import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { add, subtract } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { contains } from "../../../packages/python-values/src/contains.ts";
import { countOf } from "../../../packages/python-values/src/count.ts";
import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { iterate, lengthOf } from "../../../packages/python-values/src/iterate.ts";
import type { MutableValue } from "../../../packages/python-values/src/mutable-value.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { pythonStr } from "../../../packages/python-values/src/text/str.ts";
import { pythonTruthy } from "../../../packages/python-values/src/truthy.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { readRecord } from "../record-table.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** The items of an order to replace, and their replacements. The ids come from the caller and may be anything. */
interface ItemChange {
  readonly order: PyDict;
  readonly itemIds: PyValue;
  readonly newItemIds: PyValue;
}

/**
 * The first id that occurs more often in the request than in the order; `undefined` if all fit.
 *
 * @throws PythonError if the ids are not iterable or cannot be counted.
 */
export function findExcessItem(order: PyDict, itemIds: PyValue): PyValue | undefined {
  const ordered = iterate(getItem(order, "items")).map((item) => getItem(item, "item_id"));
  return iterate(itemIds).find((itemId) => countOf(itemIds, itemId) > countOf(ordered, itemId));
}

/** Pairs of old and new ids, as many as the shorter list has. */
export function pairItems(itemIds: PyValue, newItemIds: PyValue): (readonly [PyValue, PyValue])[] {
  const replacements = iterate(newItemIds);
  return iterate(itemIds)
    .slice(0, replacements.length)
    .map((itemId, index) => [itemId, replacements[index] as PyValue] as const);
}

/**
 * The first item of the order with the id.
 *
 * @throws PythonError `IndexError` if there is no such item.
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

/** The variants of the item's product, by item id. */
export function variantsOf({ products }: RetailDatabase, item: PyValue): PyValue {
  return getItem(readRecord(products, getItem(item, "product_id")), "variants");
}

/** The price difference of the new items, or the reason why the change is refused. */
type PriceDifference =
  | { readonly type: "difference"; readonly amount: PyNumber }
  | { readonly type: "refused"; readonly observation: string };

/**
 * Adds up the price differences, unrounded, after the checks that an exchange and a modification share. Without
 * items, the difference is the integer 0.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/exchange_delivered_order_items.py and
 * modify_pending_order_items.py.
 *
 * @throws PythonError if an id is not iterable, countable or found.
 */
export function priceDifference(
  database: RetailDatabase,
  { order, itemIds, newItemIds }: ItemChange,
): PriceDifference {
  const refuse = (why: string) => ({ type: "refused", observation: `Error: ${why}` }) as const;
  const excess = findExcessItem(order, itemIds);
  if (excess !== undefined) return refuse(`${pythonStr(excess)} not found`);
  if (lengthOf(itemIds) !== lengthOf(newItemIds)) {
    return refuse("the number of items to be exchanged should match");
  }
  let amount: PyNumber = 0n;
  for (const [itemId, newItemId] of pairItems(itemIds, newItemIds)) {
    const item = firstItem(order, itemId);
    const variants = variantsOf(database, item);
    const isKnown = contains(variants, newItemId);
    if (!isKnown || !pythonTruthy(getItem(getItem(variants, newItemId), "available"))) {
      return refuse(`new item ${pythonStr(newItemId)} not found or available`);
    }
    const variant = getItem(variants, newItemId);
    amount = add(amount, subtract(getItem(variant, "price"), getItem(item, "price")), "+=");
  }
  return { type: "difference", amount };
}
