import { toolParameters, type ToolDefinition } from "../tool-definition.ts";
import { isPyDict, isPyList, type PyDict, type PyValue } from "../../../python-values/src/index.ts";
import { isSince } from "../engine-version.ts";
import type { ParseContext } from "../parse-context.ts";
import { sglangVersion } from "./sglang-version.ts";

const merged = new WeakMap<PyDict, PyDict>();

/**
 * The schema of a tool's parameters as SGLang's detectors use it. Since 0.5.23 a schema without properties has those of
 * its alternatives. If alternatives share a name, the first one counts.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/utils.py` (`get_schema_properties`).
 */
export function sglangParameters(tool: ToolDefinition, context: ParseContext): PyValue | undefined {
  const parameters = toolParameters(tool);
  const isOld = context.dialect !== "sglang" || !isSince(sglangVersion(context), "0.5.23");
  if (isOld) return parameters;
  if (!isPyDict(parameters)) return new Map();
  const known = merged.get(parameters);
  if (known !== undefined) return known;
  const result = new Map([...parameters, ["properties", propertiesOfSchema(parameters)]]);
  merged.set(parameters, result);
  return result;
}

/** The properties of a schema, or otherwise those of its alternatives. */
export function propertiesOfSchema(schema: PyValue | undefined): PyDict {
  if (!isPyDict(schema)) return new Map();
  const own = schema.get("properties");
  if (isPyDict(own)) return own;
  const found = new Map<string, PyValue>();
  for (const keyword of ["anyOf", "oneOf", "allOf"]) {
    const branches = schema.get(keyword);
    if (!isPyList(branches)) continue;
    for (const branch of branches) {
      for (const [key, value] of propertiesOfSchema(branch)) {
        if (!found.has(key)) found.set(key, value);
      }
    }
  }
  return found;
}
