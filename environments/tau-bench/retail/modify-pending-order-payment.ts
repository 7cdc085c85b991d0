import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { contains } from "../../../packages/python-values/src/contains.ts";
import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { lengthOf } from "../../../packages/python-values/src/iterate.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { lessThan } from "../../../packages/python-values/src/less-than.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { dict, listForMethod } from "../containers.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import { creditBalance, debitBalance, paymentMethodsOf } from "./payment-method.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/modify_pending_order_payment.py. */
export const modifyPendingOrderPayment = defineTool({
  name: "modify_pending_order_payment",
  className: "ModifyPendingOrderPayment",
  parameters: ["order_id", "payment_method_id"],
  run(database: RetailDatabase, { order_id, payment_method_id }) {
    const found = findRecord(database.orders, order_id);
    if (found === undefined) return "Error: order not found";
    if (found.get("status") !== "pending") return "Error: non-pending order cannot be modified";
    const paymentMethods = paymentMethodsOf(database, found);
    if (!contains(paymentMethods, payment_method_id)) return "Error: payment method not found";
    const payments = getItem(found, "payment_history");
    if (
      lengthOf(payments) > 1 ||
      getItem(getItem(payments, 0n), "transaction_type") !== "payment"
    ) {
      return "Error: there should be exactly one payment for a pending order";
    }
    const oldPaymentMethodId = getItem(getItem(payments, 0n), "payment_method_id");
    if (pythonEquals(oldPaymentMethodId, payment_method_id)) {
      return "Error: the new payment method should be different from the current one";
    }
    const amount = getItem(getItem(payments, 0n), "amount") as PyNumber;
    const paymentMethod = getItem(paymentMethods, payment_method_id);
    const isGiftCard = getItem(paymentMethod, "source") === "gift_card";
    if (isGiftCard && lessThan(getItem(paymentMethod, "balance"), amount)) {
      return "Error: insufficient gift card balance to pay for the order";
    }

    const order = ownRecord(database.orders, order_id);
    listForMethod(getItem(order, "payment_history"), "extend").push(
      dict({
        transaction_type: "payment",
        amount,
        payment_method_id: copyValue(payment_method_id),
      }),
      dict({
        transaction_type: "refund",
        amount,
        payment_method_id: copyValue(oldPaymentMethodId),
      }),
    );
    if (isGiftCard) {
      debitBalance(database, { order, paymentMethodId: payment_method_id, amount });
    }
    if (contains(oldPaymentMethodId, "gift_card")) {
      creditBalance(database, { order, paymentMethodId: oldPaymentMethodId, amount });
    }
    return stringifyPythonJson(order);
  },
});
