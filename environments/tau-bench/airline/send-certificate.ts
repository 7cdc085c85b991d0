import { contains } from "../../../packages/python-values/src/contains.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { setItem } from "../../../packages/python-values/src/set-item.ts";
import { pythonStr } from "../../../packages/python-values/src/text/str.ts";
import { dict } from "../containers.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";

const certificateIds = ["certificate_3221322", "certificate_3221323", "certificate_3221324"];

/**
 * A user can get three certificates; the fourth call returns `None`.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/send_certificate.py.
 */
export const sendCertificate = defineTool({
  name: "send_certificate",
  className: "SendCertificate",
  parameters: ["user_id", "amount"],
  run({ users }: AirlineDatabase, { user_id, amount }) {
    const found = findRecord(users, user_id);
    if (found === undefined) return "Error: user not found";
    const paymentMethods = getItem(found, "payment_methods");
    const id = certificateIds.find((candidate) => !contains(paymentMethods, candidate));
    if (id === undefined) return null;
    const certificate = dict({ source: "certificate", amount: copyValue(amount), id });
    setItem(getItem(ownRecord(users, user_id), "payment_methods"), id, certificate);
    const [userText, amountText] = [pythonStr(user_id), pythonStr(amount)];
    return `Certificate ${id} added to user ${userText} with amount ${amountText}.`;
  },
});
