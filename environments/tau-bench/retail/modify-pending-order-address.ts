import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import { addressParts, postalAddress } from "./postal-address.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/modify_pending_order_address.py. */
export const modifyPendingOrderAddress = defineTool({
  name: "modify_pending_order_address",
  className: "ModifyPendingOrderAddress",
  parameters: ["order_id", ...addressParts],
  run({ orders }: RetailDatabase, { order_id, ...address }) {
    const found = findRecord(orders, order_id);
    if (found === undefined) return "Error: order not found";
    if (found.get("status") !== "pending") return "Error: non-pending order cannot be modified";
    const order = ownRecord(orders, order_id);
    order.set("address", postalAddress(address));
    return stringifyPythonJson(order);
  },
});
