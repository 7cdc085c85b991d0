import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { findRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/get_order_details.py. */
export const getOrderDetails = defineTool({
  name: "get_order_details",
  className: "GetOrderDetails",
  parameters: ["order_id"],
  run({ orders }: RetailDatabase, { order_id }) {
    const order = findRecord(orders, order_id);
    return order === undefined ? "Error: order not found" : stringifyPythonJson(order);
  },
});
