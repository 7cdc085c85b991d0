import { contains } from "../../../packages/python-values/src/contains.ts";
import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { pythonSorted } from "../../../packages/python-values/src/sorted.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import { findExcessItem } from "./order-items.ts";
import { paymentMethodsOf } from "./payment-method.ts";
import type { RetailDatabase } from "./retail-database.ts";

/**
 * Unlike an exchange, a return checks the payment method before the items.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/return_delivered_order_items.py.
 */
export const returnDeliveredOrderItems = defineTool({
  name: "return_delivered_order_items",
  className: "ReturnDeliveredOrderItems",
  parameters: ["order_id", "item_ids", "payment_method_id"],
  run(database: RetailDatabase, { order_id, item_ids, payment_method_id }) {
    const found = findRecord(database.orders, order_id);
    if (found === undefined) return "Error: order not found";
    if (found.get("status") !== "delivered") return "Error: non-delivered order cannot be returned";
    if (!contains(paymentMethodsOf(database, found), payment_method_id)) {
      return "Error: payment method not found";
    }
    if (!contains(payment_method_id, "gift_card") && !paidWith(found, payment_method_id)) {
      return "Error: payment method should be either the original payment method or a gift card";
    }
    if (findExcessItem(found, item_ids) !== undefined) return "Error: some item not found";

    const order = ownRecord(database.orders, order_id);
    order.set("status", "return requested");
    order.set("return_items", copyValue(pythonSorted(item_ids)));
    order.set("return_payment_method_id", copyValue(payment_method_id));
    return stringifyPythonJson(order);
  },
});

function paidWith(order: PyDict, paymentMethodId: PyValue): boolean {
  const firstPayment = getItem(getItem(order, "payment_history"), 0n);
  return pythonEquals(getItem(firstPayment, "payment_method_id"), paymentMethodId);
}
