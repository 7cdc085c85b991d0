import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { multiply, subtract } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";
import { deductFromGiftCard, recordChangePayment, refuseChangePayment } from "./change-payment.ts";

/** The price of a bag beyond the free ones. */
const baggagePrice = 50n;

/** **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/update_reservation_baggages.py. */
export const updateReservationBaggages = defineTool({
  name: "update_reservation_baggages",
  className: "UpdateReservationBaggages",
  parameters: ["reservation_id", "total_baggages", "nonfree_baggages", "payment_id"],
  run(database: AirlineDatabase, { reservation_id, payment_id, ...baggages }) {
    const found = findRecord(database.reservations, reservation_id);
    if (found === undefined) return "Error: reservation not found";
    const added = subtract(baggages.nonfree_baggages, getItem(found, "nonfree_baggages"));
    const totalPrice = multiply(baggagePrice, added > 0 ? added : 0n) as PyNumber;
    const payment = { reservation: found, paymentId: payment_id, totalPrice };
    const refusal = refuseChangePayment(database, payment);
    if (refusal !== undefined) return refusal;

    const reservation = ownRecord(database.reservations, reservation_id);
    reservation.set("total_baggages", copyValue(baggages.total_baggages));
    reservation.set("nonfree_baggages", copyValue(baggages.nonfree_baggages));
    deductFromGiftCard(database, payment);
    recordChangePayment(reservation, payment);
    return stringifyPythonJson(reservation);
  },
});
