import { isSince, type SglangVersion } from "../../engine-version.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  pythonEquals,
  pythonTruthy,
  pythonTypeName,
  type PyValue,
} from "../../../../python-values/src/index.ts";

/** JSON Schema's name for the type of a value. */
export function schemaTypeOf(value: PyValue): string {
  const names = {
    NoneType: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
  } as const;
  return names[pythonTypeName(value)];
}

/**
 * All types that a schema allows, in any of its alternatives; `string` if it does not restrict
 * them. vLLM coerces by these types, and SGLang does for MiniMax M2.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/utils.py` (`extract_types_from_schema`), and
 * sgl-project/sglang, `python/sglang/srt/function_call/minimax_m2.py`.
 */
export function typesOfSchema(schema: PyValue | undefined): Set<string> {
  if (!isPyDict(schema)) return new Set(["string"]);
  const types = new Set<string>();
  const type = schema.get("type");
  for (const item of isPyList(type) ? type : [type]) if (typeof item === "string") types.add(item);
  const values = schema.get("enum");
  if (isPyList(values)) for (const value of values) types.add(schemaTypeOf(value));
  for (const field of ["anyOf", "oneOf", "allOf"]) {
    const alternatives = schema.get(field);
    if (!isPyList(alternatives)) continue;
    for (const alternative of alternatives) {
      for (const inner of typesOfSchema(alternative)) types.add(inner);
    }
  }
  return types.size === 0 ? new Set(["string"]) : types;
}

/**
 * The type that SGLang infers for a parameter: from `type`, alternatives, `enum`, `allOf`,
 * `properties` and `items`, in this order; `undefined` if none of them gives a type. The value of
 * `type` in a broken schema is returned unchanged.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/utils.py`
 * (`infer_type_from_json_schema`).
 */
export function inferSchemaType(
  schema: PyValue | undefined,
  version: SglangVersion,
): PyValue | undefined {
  if (!isPyDict(schema)) return undefined;
  return (
    inferFromType(schema) ??
    inferFromAlternatives(schema, version) ??
    inferFromEnum(schema) ??
    inferFromAllOf(schema, version) ??
    (schema.has("properties") ? "object" : schema.has("items") ? "array" : undefined)
  );
}

function inferFromType(schema: PyDict): PyValue | undefined {
  const type = schema.get("type");
  if (typeof type === "string") return type;
  if (!isPyList(type) || type.length === 0) return undefined;
  return type.find((item) => item !== "null") ?? "string";
}

function inferFromAlternatives(schema: PyDict, version: SglangVersion): PyValue | undefined {
  const anyOf = schema.get("anyOf");
  const alternatives = anyOf !== undefined && pythonTruthy(anyOf) ? anyOf : schema.get("oneOf");
  if (!isPyList(alternatives)) return undefined;
  const types = alternatives.flatMap((alternative) => {
    const type = inferSchemaType(alternative, version);
    return type !== undefined && pythonTruthy(type) ? [type] : [];
  });
  const [first] = types;
  if (first === undefined) return undefined;
  const different = types.filter(
    (type, index) => types.findIndex((earlier) => pythonEquals(earlier, type)) === index,
  );
  if (different.length === 1) return first;
  const seesOptional = isSince(version, "2026-08");
  if (seesOptional && different.length === 2 && types.includes("null")) {
    return types.find((type) => type !== "null");
  }
  return types.includes("string") ? "string" : first;
}

function inferFromEnum(schema: PyDict): PyValue | undefined {
  const values = schema.get("enum");
  if (!isPyList(values)) return undefined;
  const types = new Set(values.map(schemaTypeOf));
  const [only] = types;
  return types.size === 1 ? only : "string";
}

function inferFromAllOf(schema: PyDict, version: SglangVersion): PyValue | undefined {
  const parts = schema.get("allOf");
  if (!isPyList(parts)) return undefined;
  const types = parts.map((part) => inferSchemaType(part, version));
  const found = types.find((type) => type !== undefined && pythonTruthy(type) && type !== "string");
  return found ?? "string";
}
