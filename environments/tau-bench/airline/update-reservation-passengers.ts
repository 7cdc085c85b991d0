import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { lengthOf } from "../../../packages/python-values/src/iterate.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/update_reservation_passengers.py. */
export const updateReservationPassengers = defineTool({
  name: "update_reservation_passengers",
  className: "UpdateReservationPassengers",
  parameters: ["reservation_id", "passengers"],
  run({ reservations }: AirlineDatabase, { reservation_id, passengers }) {
    const found = findRecord(reservations, reservation_id);
    if (found === undefined) return "Error: reservation not found";
    if (lengthOf(passengers) !== lengthOf(getItem(found, "passengers"))) {
      return "Error: number of passengers does not match";
    }
    const reservation = ownRecord(reservations, reservation_id);
    reservation.set("passengers", copyValue(passengers));
    return stringifyPythonJson(reservation);
  },
});
