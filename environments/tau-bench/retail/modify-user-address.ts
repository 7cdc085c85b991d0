import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import { addressParts, postalAddress } from "./postal-address.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/modify_user_address.py. */
export const modifyUserAddress = defineTool({
  name: "modify_user_address",
  className: "ModifyUserAddress",
  parameters: ["user_id", ...addressParts],
  run({ users }: RetailDatabase, { user_id, ...address }) {
    if (findRecord(users, user_id) === undefined) return "Error: user not found";
    const user = ownRecord(users, user_id);
    user.set("address", postalAddress(address));
    return stringifyPythonJson(user);
  },
});
