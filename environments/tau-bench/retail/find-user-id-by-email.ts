import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { lowerOf } from "../lower-of.ts";
import { defineTool } from "../tau-tool.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/find_user_id_by_email.py. */
export const findUserIdByEmail = defineTool({
  name: "find_user_id_by_email",
  className: "FindUserIdByEmail",
  parameters: ["email"],
  run({ users }: RetailDatabase, { email }) {
    const wanted = lowerOf(email);
    for (const [userId, profile] of users.entries()) {
      if (lowerOf(getItem(profile, "email")) === wanted) return userId;
    }
    return "Error: user not found";
  },
});
