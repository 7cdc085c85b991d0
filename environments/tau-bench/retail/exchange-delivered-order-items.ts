import { contains } from "../../../packages/python-values/src/contains.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { lessThan } from "../../../packages/python-values/src/less-than.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { roundHalfEven } from "../../../packages/python-values/src/numbers/round.ts";
import { pythonSorted } from "../../../packages/python-values/src/sorted.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import { priceDifference } from "./order-items.ts";
import { paymentMethodsOf } from "./payment-method.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/exchange_delivered_order_items.py. */
export const exchangeDeliveredOrderItems = defineTool({
  name: "exchange_delivered_order_items",
  className: "ExchangeDeliveredOrderItems",
  parameters: ["order_id", "item_ids", "new_item_ids", "payment_method_id"],
  run(database: RetailDatabase, { order_id, item_ids, new_item_ids, payment_method_id }) {
    const found = findRecord(database.orders, order_id);
    if (found === undefined) return "Error: order not found";
    if (found.get("status") !== "delivered")
      return "Error: non-delivered order cannot be exchanged";
    const change = { order: found, itemIds: item_ids, newItemIds: new_item_ids };
    const price = priceDifference(database, change);
    if (price.type === "refused") return price.observation;
    const difference = roundHalfEven(price.amount, 2);
    const paymentMethods = paymentMethodsOf(database, found);
    if (!contains(paymentMethods, payment_method_id)) return "Error: payment method not found";
    const paymentMethod = getItem(paymentMethods, payment_method_id);
    if (
      getItem(paymentMethod, "source") === "gift_card" &&
      lessThan(getItem(paymentMethod, "balance"), difference)
    ) {
      return "Error: insufficient gift card balance to pay for the price difference";
    }

    const order = ownRecord(database.orders, order_id);
    order.set("status", "exchange requested");
    order.set("exchange_items", copyValue(pythonSorted(item_ids)));
    order.set("exchange_new_items", copyValue(pythonSorted(new_item_ids)));
    order.set("exchange_payment_method_id", copyValue(payment_method_id));
    order.set("exchange_price_difference", difference);
    return stringifyPythonJson(order);
  },
});
