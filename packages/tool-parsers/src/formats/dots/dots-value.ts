import { withinSteps, type StepBudget } from "../../pattern/step-budget.ts";
import {
  isPyDict,
  isPyList,
  parsePythonJson,
  type PyDict,
  pythonLower,
  pythonStr,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { propertiesOfSchema } from "../../sglang/sglang-parameters.ts";

/** Maximum number of references and alternatives that are followed in a row. */
const maxDepth = 10;
/**
 * Maximum number of schemas that are visited for one parameter. In a client's schema, the number can double with each
 * reference.
 */
const maxSteps = 5_000;

/**
 * Reads a parameter's value as the first type that its schema names, following references.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/dots_detector.py`.
 */
export function readDotsValue(
  text: string,
  place: { readonly name: string; readonly key: string },
  { tools, dialect }: ParseContext,
): PyValue {
  const tool = tools.find(({ name }) => name === place.name);
  const root = tool === undefined ? undefined : toolParameters(tool);
  const own = isPyDict(root) ? root.get("properties") : undefined;
  const properties = dialect === "sglang" ? propertiesOfSchema(root) : own;
  const schema = isPyDict(properties) ? properties.get(place.key) : undefined;
  const defs = isPyDict(root) ? root.get("$defs") : undefined;
  const type = withinSteps(maxSteps, (budget) =>
    resolveType(schema, { defs: isPyDict(defs) ? defs : new Map(), budget }, 0),
  );
  return convert(text, type === undefined || !pythonTruthy(type) ? "string" : type);
}

function resolveType(
  schema: PyValue | undefined,
  search: { readonly defs: PyDict; readonly budget: StepBudget },
  depth: number,
): PyValue | undefined {
  search.budget.spend();
  if (!isPyDict(schema) || depth > maxDepth) return undefined;
  if (schema.has("type")) return schema.get("type");
  const reference = schema.get("$ref");
  if (typeof reference === "string" && reference.startsWith("#/$defs/")) {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    return resolveType(search.defs.get(name), search, depth + 1);
  }
  for (const keyword of ["anyOf", "oneOf", "allOf"]) {
    const alternatives = schema.get(keyword);
    if (!isPyList(alternatives)) continue;
    for (const alternative of alternatives) {
      if (isPyDict(alternative) && alternative.get("type") === "null") continue;
      const type = resolveType(alternative, search, depth + 1);
      if (type !== undefined && type !== null) return type;
    }
  }
  return undefined;
}

function convert(text: string, declared: PyValue): PyValue {
  const lower = pythonLower(text);
  if (lower === "null") return null;
  const named = isPyList(declared)
    ? (declared.find((item) => item !== "null") ?? (declared.includes(null) ? null : "string"))
    : declared;
  const type = pythonLower(pythonStr(named));
  if (["string", "str", "text"].includes(type)) return text;
  if (["integer", "int"].includes(type)) {
    return catchPython<PyValue>(() => parsePythonInt(text), "ValueError") ?? text;
  }
  if (["number", "float"].includes(type)) {
    const number = catchPython(() => parsePythonFloat(text), "ValueError");
    if (number === undefined) return text;
    return Number.isInteger(number) ? BigInt(number) : number;
  }
  if (["boolean", "bool"].includes(type)) return lower === "true" || lower === "1";
  const json = catchPython(() => parsePythonJson(text), "ValueError");
  return json === undefined ? text : json;
}
