import type { PyNumber } from "../../../src/python/numbers/arithmetic.ts";
import { subtract } from "../../../src/python/numbers/arithmetic.ts";
import { contains } from "../../../src/python/contains.ts";
import { getItem } from "../../../src/python/get-item.ts";
import { lessThan } from "../../../src/python/less-than.ts";
import type { MutableDict } from "../../../src/python/mutable-value.ts";
import { copyValue } from "../../../src/python/mutable-value.ts";
import { setItem } from "../../../src/python/set-item.ts";
import type { PyDict, PyValue } from "../../../src/python/value.ts";
import { dict, listForMethod } from "../containers.ts";
import { ownRecord, readRecord } from "../record-table.ts";
import type { AirlineDatabase } from "./airline-database.ts";

/** What a change of a reservation costs, and which of its user's payment methods pays for it. */
interface ChangePayment {
  readonly reservation: PyDict;
  readonly paymentId: PyValue;
  readonly totalPrice: PyNumber;
}

/**
 * Why a payment method cannot pay for a change, as the original says it; `undefined` where it can.
 *
 * @throws PythonError where the payment method cannot be looked up.
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

/** Takes the price off the payment method where it is a gift card; it is never rounded. */
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
 * Writes the payment into the reservation's history, unless it is zero.
 *
 * @throws PythonError `AttributeError` where the history is no list.
 */
export function recordChangePayment(
  reservation: MutableDict,
  { paymentId, totalPrice }: Pick<ChangePayment, "paymentId" | "totalPrice">,
): void {
  // Integers and floats alike: 0, 0.0 and -0.0 are no payment.
  if (Number(totalPrice) === 0) return;
  listForMethod(getItem(reservation, "payment_history"), "append").push(
    dict({ payment_id: copyValue(paymentId), amount: totalPrice }),
  );
}
