import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { findRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";

/**
 * Like the original, it answers "user not found" for an unknown reservation.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/get_reservation_details.py.
 */
export const getReservationDetails = defineTool({
  name: "get_reservation_details",
  className: "GetReservationDetails",
  parameters: ["reservation_id"],
  run({ reservations }: AirlineDatabase, { reservation_id }) {
    const reservation = findRecord(reservations, reservation_id);
    return reservation === undefined ? "Error: user not found" : stringifyPythonJson(reservation);
  },
});
