import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { findRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { RetailDatabase } from "./retail-database.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/get_product_details.py. */
export const getProductDetails = defineTool({
  name: "get_product_details",
  className: "GetProductDetails",
  parameters: ["product_id"],
  run({ products }: RetailDatabase, { product_id }) {
    const product = findRecord(products, product_id);
    return product === undefined ? "Error: product not found" : stringifyPythonJson(product);
  },
});
