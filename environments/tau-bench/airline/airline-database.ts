import type { RecordTable } from "../record-table.ts";

/** The airline database of one episode. Flights never change. */
export type AirlineDatabase = {
  readonly flights: RecordTable;
  readonly reservations: RecordTable;
  readonly users: RecordTable;
};
