import type { RecordTable } from "../record-table.ts";

/** The retail database of one episode. */
export type RetailDatabase = {
  readonly orders: RecordTable;
  readonly products: RecordTable;
  readonly users: RecordTable;
};
