import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { add, negate } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { roundHalfEven } from "../../../packages/python-values/src/numbers/round.ts";
import { setItem } from "../../../packages/python-values/src/set-item.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { ownRecord, readRecord } from "../record-table.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** The payment methods of the user who placed the order, for reading. */
export function paymentMethodsOf({ users }: RetailDatabase, order: PyDict): PyValue {
  return getItem(readRecord(users, getItem(order, "user_id")), "payment_methods");
}

/**
 * Adds an amount to a payment method's balance and rounds the balance to cents, which the original does in two
 * statements.
 *
 * @throws PythonError `KeyError` if the user, the payment method or its balance is missing.
 */
export function creditBalance(
  { users }: RetailDatabase,
  { order, paymentMethodId, amount }: Credit,
): void {
  const user = ownRecord(users, getItem(order, "user_id"));
  const method = getItem(getItem(user, "payment_methods"), paymentMethodId);
  const balance = add(getItem(method, "balance"), amount, "+=");
  setItem(method, "balance", roundHalfEven(balance, 2));
}

/** Deducts an amount from a payment method's balance. Throws like `creditBalance()`. */
export function debitBalance(database: RetailDatabase, debit: Credit): void {
  creditBalance(database, { ...debit, amount: negate(debit.amount) });
}

/** An amount, and the payment method of the order's user to credit. */
interface Credit {
  readonly order: PyDict;
  readonly paymentMethodId: PyValue;
  readonly amount: PyNumber;
}
