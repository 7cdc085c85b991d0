import { negate } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { iterate } from "../../../packages/python-values/src/iterate.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { dict, listForMethod } from "../containers.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";

/**
 * Reverses every payment. It can be called again, and then reverses the reversals too.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/cancel_reservation.py.
 */
export const cancelReservation = defineTool({
  name: "cancel_reservation",
  className: "CancelReservation",
  parameters: ["reservation_id"],
  run({ reservations }: AirlineDatabase, { reservation_id }) {
    const found = findRecord(reservations, reservation_id);
    if (found === undefined) return "Error: reservation not found";
    const refunds = iterate(getItem(found, "payment_history")).map((payment) =>
      dict({
        payment_id: copyValue(getItem(payment, "payment_id")),
        amount: negate(getItem(payment, "amount")),
      }),
    );
    const reservation = ownRecord(reservations, reservation_id);
    listForMethod(getItem(reservation, "payment_history"), "extend").push(...refunds);
    reservation.set("status", "cancelled");
    return stringifyPythonJson(reservation);
  },
});
