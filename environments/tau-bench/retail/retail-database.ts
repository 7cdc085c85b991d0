import type { RecordTable } from "../record-table.ts";

/** The database of the retail domain as one episode sees it. */
export type RetailDatabase = {
  readonly orders: RecordTable;
  readonly products: RecordTable;
  readonly users: RecordTable;
};
