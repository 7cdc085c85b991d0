import { checkSpecs, type ColumnSpecs } from "../columns/column-specs.ts";
import { UsageError } from "../errors.ts";
import { findModelFolder } from "../hub/find-model-folder.ts";
import { readModelFolder } from "../tokenizer/model-folder.ts";
import type { ColumnsConfig } from "./config/columns-config.ts";

/**
 * Completes the specs of side columns with the shape of the model's experts.
 *
 * @param model - The model's folder, or its name on the hub. Absent if the program has a renderer of its own.
 * @throws UsageError if the folder's `config.json` does not describe a mixture of experts, or a size is out of range.
 */
export async function resolveColumns(
  config: ColumnsConfig | undefined,
  model: string | undefined,
): Promise<ColumnSpecs | undefined> {
  if (config === undefined) return undefined;
  const { routedExperts, ...rest } = config;
  if (routedExperts !== "of-model") {
    const specs: ColumnSpecs = { ...rest, ...(routedExperts !== undefined && { routedExperts }) };
    checkSpecs(specs, "--columns");
    return specs;
  }
  const folder =
    model === undefined ? undefined : await readModelFolder(await findModelFolder(model));
  if (folder?.experts === undefined) {
    const where =
      folder === undefined
        ? "no model folder is given"
        : `config.json in ${folder.dir} has no experts`;
    throw new UsageError(
      `Cannot use --columns routedExperts: ${where}; give the shape, such as routedExperts=48x8/128 ` +
        "(layers x experts a token / experts)",
    );
  }
  const specs: ColumnSpecs = { routedExperts: folder.experts, ...rest };
  checkSpecs(specs, "--columns");
  return specs;
}
