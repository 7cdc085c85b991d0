import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { pythonStr } from "../../../packages/python-values/src/text/str.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { defineTool } from "../tau-tool.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/list_all_product_types.py. */
export const listAllProductTypes = defineTool({
  name: "list_all_product_types",
  className: "ListAllProductTypes",
  parameters: [],
  run({ products }: RetailDatabase) {
    const idsByName = new Map<string, PyValue>();
    for (const [, product] of products.entries()) {
      idsByName.set(pythonStr(getItem(product, "name")), getItem(product, "product_id"));
    }
    return stringifyPythonJson(idsByName, { sortKeys: true });
  },
});
