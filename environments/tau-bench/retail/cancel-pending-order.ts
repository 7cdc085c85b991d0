import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { contains } from "../../../packages/python-values/src/contains.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { MutableValue } from "../../../packages/python-values/src/mutable-value.ts";
import { dict, listForMethod } from "../containers.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import { creditBalance } from "./payment-method.ts";
import type { RetailDatabase } from "./retail-database.ts";

const reasons = ["no longer needed", "ordered by mistake"];

/**
 * Gift cards are refunded one by one, before the order changes: if one fails, the earlier ones stay refunded.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/cancel_pending_order.py.
 */
export const cancelPendingOrder = defineTool({
  name: "cancel_pending_order",
  className: "CancelPendingOrder",
  parameters: ["order_id", "reason"],
  run(database: RetailDatabase, { order_id, reason }) {
    const found = findRecord(database.orders, order_id);
    if (found === undefined) return "Error: order not found";
    if (found.get("status") !== "pending") return "Error: non-pending order cannot be cancelled";
    if (typeof reason !== "string" || !reasons.includes(reason)) return "Error: invalid reason";

    const order = ownRecord(database.orders, order_id);
    const history = listForMethod(getItem(order, "payment_history"), "extend");
    const refunds = history.map((payment): MutableValue => {
      const paymentMethodId = getItem(payment, "payment_method_id");
      const amount = getItem(payment, "amount");
      if (contains(paymentMethodId, "gift_card")) {
        creditBalance(database, { order, paymentMethodId, amount: amount as PyNumber });
      }
      return dict({
        transaction_type: "refund",
        amount,
        payment_method_id: paymentMethodId,
      });
    });
    order.set("status", "cancelled");
    order.set("cancel_reason", reason);
    history.push(...refunds);
    return stringifyPythonJson(order);
  },
});
