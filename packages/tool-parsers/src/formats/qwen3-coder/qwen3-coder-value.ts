import {
  isPyDict,
  parsePythonJson,
  PythonError,
  pythonLower,
  pythonStr,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { isSince, type SglangVersion } from "../../engine-version.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import {
  evaluatePythonLiteral,
  jsonLiteral,
  type PythonLiteral,
} from "../../shared/python/python-literal.ts";
import {
  parsePythonFloat,
  parsePythonInt,
  truncateFloat,
} from "../../shared/python/python-number.ts";
import { inferSchemaType } from "../../shared/schema/schema-type.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";

/** Names of types that keep the text unchanged. */
export const textTypes: ReadonlySet<string> = new Set(
  "string str text varchar char enum".split(" "),
);
/** Matches the names of types that are read as integers. */
export const intPattern = /^(?:int|uint|long|short|unsigned)/;
/** Matches the names of types that are read as floats. */
export const floatPattern = /^(?:num|float)/;
/** Names of boolean types. */
export const booleanTypes: ReadonlySet<string> = new Set(["boolean", "bool", "binary"]);
/** Matches the names of types that are read as JSON first. */
export const jsonTypePattern = /^(?:(?:object|array|arr)$|dict|list)/;

/**
 * Converts the text of a parameter. `null` is null for any type; other text becomes the type of the
 * schema. Text that does not fit stays text, except that a boolean becomes false.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/qwen3_coder_detector.py`
 * (`_convert_param_value`).
 *
 * @throws PythonError if the tool's schema is not an object.
 */
export function convertQwen3CoderValue(
  text: string,
  facts: { readonly key: string; readonly schemas: PyValue; readonly context: ParseContext },
): PythonLiteral {
  if (pythonLower(text) === "null") return jsonLiteral(null);
  const { key, schemas } = facts;
  if (!isPyDict(schemas)) throw new PythonError("TypeError", "the properties are not an object");
  const schema = schemas.get(key);
  if (schema === undefined) return jsonLiteral(text);
  const type = nameType(schema, sglangVersion(facts.context));
  if (textTypes.has(type)) return jsonLiteral(text);
  if (intPattern.test(type))
    return jsonLiteral(catchPython<PyValue>(() => parsePythonInt(text)) ?? text);
  if (floatPattern.test(type)) return jsonLiteral(catchPython(() => readNumber(text)) ?? text);
  if (booleanTypes.has(type)) return jsonLiteral(pythonLower(text) === "true");
  const value = jsonTypePattern.test(type) ? catchPython(() => parsePythonJson(text)) : undefined;
  if (value !== undefined) return jsonLiteral(value);
  return catchPython(() => evaluatePythonLiteral(text)) ?? jsonLiteral(text);
}

function nameType(schema: PyValue, version: SglangVersion): string {
  const type = isSince(version, "2026-08")
    ? inferSchemaType(schema, version)
    : isPyDict(schema)
      ? schema.get("type")
      : undefined;
  return pythonLower(pythonStrip(pythonStr(type ?? "string")));
}

/** Reads a number. A whole number without a point or an exponent is an integer. */
function readNumber(text: string): PyValue {
  const value = parsePythonFloat(text);
  const isPlain = !text.includes(".") && !pythonLower(text).includes("e");
  return isPlain && Number.isInteger(value) ? truncateFloat(value) : value;
}
