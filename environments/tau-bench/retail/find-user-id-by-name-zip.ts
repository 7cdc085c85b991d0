import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { lowerOf } from "../lower-of.ts";
import { defineTool } from "../tau-tool.ts";
import type { RetailDatabase } from "./retail-database.ts";

/**
 * The comparisons keep the original's order: a last name that is not a string raises only if the first name
 * matches, and the zip is compared only if both names match.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/find_user_id_by_name_zip.py.
 */
export const findUserIdByNameZip = defineTool({
  name: "find_user_id_by_name_zip",
  className: "FindUserIdByNameZip",
  parameters: ["first_name", "last_name", "zip"],
  run({ users }: RetailDatabase, { first_name, last_name, zip }) {
    const wantedFirstName = lowerOf(first_name);
    for (const [userId, profile] of users.entries()) {
      if (
        loweredName(profile, "first_name") === wantedFirstName &&
        loweredName(profile, "last_name") === lowerOf(last_name) &&
        pythonEquals(getItem(getItem(profile, "address"), "zip"), zip)
      ) {
        return userId;
      }
    }
    return "Error: user not found";
  },
});

function loweredName(profile: PyDict, part: "first_name" | "last_name"): string {
  return lowerOf(getItem(getItem(profile, "name"), part));
}
