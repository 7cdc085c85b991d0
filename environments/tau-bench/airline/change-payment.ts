import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { subtract } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { contains } from "../../../packages/python-values/src/contains.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { lessThan } from "../../../packages/python-values/src/less-than.ts";
import type { MutableDict } from "../../../packages/python-values/src/mutable-value.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { setItem } from "../../../packages/python-values/src/set-item.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { dict, listForMethod } from "../containers.ts";
import { ownRecord, readRecord } from "../record-table.ts";
import type { AirlineDatabase } from "./airline-database.ts";

/** The price of changing a reservation, and the user's payment method for it. */
interface ChangePayment {
  readonly reservation: PyDict;
  readonly paymentId: PyValue;
  readonly totalPrice: PyNumber;
}

/**
 * The original's reason why a payment method cannot pay for a change; `undefined` if it can.
 *
 * @throws PythonError if the payment method cannot be looked up.
 */
export function refuseChangePayment(
  { users }: AirlineDatabase,
  { reservation, paymentId, totalPrice }: ChangePayment,
): string | undefined {
  const user = readRecord(users, getItem(reservation, "user_id"));
  const paymentMethods = getItem(user, "payment_methods");
  if (!contains(paymentMethods, paymentId)) return "Error: payment method not found";
  const paymentMethod = getItem(paymentMethods, paymentId);
  const source = getItem(paymentMethod, "source");
  if (source === "certificate") {
    return "Error: certificate cannot be used to update reservation";
  }
  if (source === "gift_card" && lessThan(getItem(paymentMethod, "amount"), totalPrice)) {
    return "Error: gift card balance is not enough";
  }
  return undefined;
}

/** Deducts the price from a gift card, without rounding; other payment methods are not changed. */
export function deductFromGiftCard(
  { users }: AirlineDatabase,
  { reservation, paymentId, totalPrice }: ChangePayment,
): void {
  const userId = getItem(reservation, "user_id");
  const read = getItem(getItem(readRecord(users, userId), "payment_methods"), paymentId);
  if (getItem(read, "source") !== "gift_card") return;
  const owned = getItem(getItem(ownRecord(users, userId), "payment_methods"), paymentId);
  setItem(owned, "amount", subtract(getItem(owned, "amount"), totalPrice, "-="));
}

/**
 * Adds the payment to the reservation's history, unless it is zero.
 *
 * @throws PythonError `AttributeError` if the history is not a list.
 */
export function recordChangePayment(
  reservation: MutableDict,
  { paymentId, totalPrice }: Pick<ChangePayment, "paymentId" | "totalPrice">,
): void {
  // An integer or float 0, including -0.0, is not a payment.
  if (Number(totalPrice) === 0) return;
  listForMethod(getItem(reservation, "payment_history"), "append").push(
    dict({ payment_id: copyValue(paymentId), amount: totalPrice }),
  );
}
