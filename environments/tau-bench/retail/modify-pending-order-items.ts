import { absolute } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { contains } from "../../../packages/python-values/src/contains.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { lessThan } from "../../../packages/python-values/src/less-than.ts";
import type { MutableDict } from "../../../packages/python-values/src/mutable-value.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { setItem } from "../../../packages/python-values/src/set-item.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { dict, listForMethod } from "../containers.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import { firstItem, pairItems, priceDifference, variantsOf } from "./order-items.ts";
import { debitBalance, paymentMethodsOf } from "./payment-method.ts";
import type { RetailDatabase } from "./retail-database.ts";

/**
 * Unlike an exchange's, the payment's amount is not rounded. Items are replaced one by one, so a later replacement
 * may match an item that was replaced just before.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/modify_pending_order_items.py.
 */
export const modifyPendingOrderItems = defineTool({
  name: "modify_pending_order_items",
  className: "ModifyPendingOrderItems",
  parameters: ["order_id", "item_ids", "new_item_ids", "payment_method_id"],
  run(database: RetailDatabase, { order_id, item_ids, new_item_ids, payment_method_id }) {
    const found = findRecord(database.orders, order_id);
    if (found === undefined) return "Error: order not found";
    if (found.get("status") !== "pending") return "Error: non-pending order cannot be modified";
    const change = { order: found, itemIds: item_ids, newItemIds: new_item_ids };
    const price = priceDifference(database, change);
    if (price.type === "refused") return price.observation;
    const paymentMethods = paymentMethodsOf(database, found);
    if (!contains(paymentMethods, payment_method_id)) return "Error: payment method not found";
    const paymentMethod = getItem(paymentMethods, payment_method_id);
    const isGiftCard = getItem(paymentMethod, "source") === "gift_card";
    if (isGiftCard && lessThan(getItem(paymentMethod, "balance"), price.amount)) {
      return "Error: insufficient gift card balance to pay for the new item";
    }

    const order = ownRecord(database.orders, order_id);
    listForMethod(getItem(order, "payment_history"), "append").push(
      dict({
        transaction_type: price.amount > 0 ? "payment" : "refund",
        amount: absolute(price.amount),
        payment_method_id: copyValue(payment_method_id),
      }),
    );
    if (isGiftCard) {
      debitBalance(database, { order, paymentMethodId: payment_method_id, amount: price.amount });
    }
    for (const pair of pairItems(item_ids, new_item_ids)) replaceItem(database, order, pair);
    order.set("status", "pending (item modified)");
    return stringifyPythonJson(order);
  },
});

function replaceItem(
  database: RetailDatabase,
  order: MutableDict,
  [itemId, newItemId]: readonly [PyValue, PyValue],
): void {
  const item = firstItem(order, itemId);
  setItem(item, "item_id", copyValue(newItemId));
  const variant = getItem(variantsOf(database, item), newItemId);
  setItem(item, "price", copyValue(getItem(variant, "price")));
  setItem(item, "options", copyValue(getItem(variant, "options")));
}
