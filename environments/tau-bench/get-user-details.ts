import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import type { RecordTable } from "./record-table.ts";
import { findRecord } from "./record-table.ts";
import { defineTool } from "./tau-tool.ts";

/**
 * The same tool in both domains.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/get_user_details.py.
 */
export const getUserDetails = defineTool({
  name: "get_user_details",
  className: "GetUserDetails",
  parameters: ["user_id"],
  run({ users }: { readonly users: RecordTable }, { user_id }) {
    const user = findRecord(users, user_id);
    return user === undefined ? "Error: user not found" : stringifyPythonJson(user);
  },
});
