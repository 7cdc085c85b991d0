import type { RecordTable } from "../record-table.ts";

/** The database of the airline domain as one episode sees it. Flights never change. */
export type AirlineDatabase = {
  readonly flights: RecordTable;
  readonly reservations: RecordTable;
  readonly users: RecordTable;
};
