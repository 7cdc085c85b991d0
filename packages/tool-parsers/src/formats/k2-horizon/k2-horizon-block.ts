import { findArguments } from "../../shared/tags/arg-pairs.ts";
import {
  isPyDict,
  isPyList,
  parsePythonJson,
  type PyDict,
  pythonStrip,
  pythonTruthy,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { inferSchemaType } from "../../shared/schema/schema-type.ts";
import { propertiesOfSchema } from "../../sglang/sglang-parameters.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { writeJson } from "../../shared/json/write-json.ts";

/** A call of a block. */
export interface K2Call {
  readonly name: string;
  readonly values: PyDict;
}

/** The tags of K2 Horizon's arguments. */
export const k2Arguments = {
  keyOpen: "<ifm|arg_key>",
  keyClose: "</ifm|arg_key>",
  typeOpen: "<ifm|arg_type>",
  typeClose: "</ifm|arg_type>",
  valueOpen: "<ifm|arg_value>",
  valueClose: "</ifm|arg_value>",
} as const;
/**
 * Reads the calls of a K2 Horizon block: JSON, as one object or a list, or a name with keys,
 * optional types, and values in tags.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/k2_v3_detector.py`.
 *
 * @throws PythonError `ValueError` or `TypeError` if the block is malformed.
 */
export function readK2Block(block: string, context: ParseContext): readonly K2Call[] {
  const stripped = pythonStrip(block);
  return /^[[{]/.test(stripped) ? readJsonCalls(stripped, context) : [readTagCall(block, context)];
}

function readJsonCalls(json: string, context: ParseContext): K2Call[] {
  const payload = parsePythonJson(json);
  return (isPyList(payload) ? payload : [payload]).map((entry) => {
    const call = isPyDict(entry) && entry.has("function") ? entry.get("function") : entry;
    const name = isPyDict(call) ? call.get("name") : undefined;
    if (!isPyDict(entry) || !isPyDict(call) || typeof name !== "string" || name === "") {
      throw new PythonValueError("the call is missing a name");
    }
    const given = readGivenArguments(call);
    const values = [...given].map(([key, value]) => {
      return [key, coerce(value, { name, key, isText: false }, context)] as const;
    });
    return { name, values: new Map(values) };
  });
}

function readGivenArguments(call: PyDict): PyDict {
  const key = call.has("arguments") ? "arguments" : "parameters";
  let value = call.get(key) ?? null;
  if (typeof value === "string") {
    value = pythonStrip(value) === "" ? null : parsePythonJson(value);
  }
  if (value === null) return new Map();
  if (isPyDict(value)) return value;
  throw new PythonValueError("the arguments must be an object");
}

function readTagCall(block: string, context: ParseContext): K2Call {
  const first = block.indexOf(k2Arguments.keyOpen);
  const name = pythonStrip(first === -1 ? block : block.slice(0, first));
  if (name === "") throw new PythonValueError("the call is missing a name");
  const text = first === -1 ? "" : block.slice(first);
  const values = new Map<string, PyValue>();
  let position = 0;
  for (const { key: rawKey, type, value, start, end } of findArguments(text, k2Arguments)) {
    if (pythonStrip(text.slice(position, start)) !== "") throw malformedFraming();
    const key = pythonStrip(rawKey);
    if (key === "") throw new PythonValueError("an argument is missing a key");
    const inlineType = type === undefined ? undefined : pythonStrip(type);
    const place = { name, key, isText: true, ...(inlineType !== undefined && { inlineType }) };
    values.set(key, coerce(value, place, context));
    position = end;
  }
  if (pythonStrip(text.slice(position)) !== "") throw malformedFraming();
  return { name, values };
}

function malformedFraming(): PythonValueError {
  return new PythonValueError("malformed argument framing");
}

interface Place {
  readonly name: string;
  readonly key: string;
  /** True if the value is text from a tag, and not from JSON. */
  readonly isText: boolean;
  readonly inlineType?: string;
}

function coerce(value: PyValue, place: Place, context: ParseContext): PyValue {
  const declared = declaredType(place, context);
  const hasDeclared = declared !== undefined && pythonTruthy(declared);
  const type = hasDeclared ? declared : place.inlineType;
  if (type === "any") return value;
  if (type === "string") {
    return typeof value === "string" ? value : writeJson(value);
  }
  if (typeof value !== "string" || (type === undefined && !place.isText)) return value;
  const json = catchPython(() => parsePythonJson(pythonStrip(value)), "JSONDecodeError");
  return json === undefined ? value : json;
}

/** The one type that the tool declares for a parameter; `undefined` if there may be several. */
function declaredType({ name, key }: Place, context: ParseContext): PyValue | undefined {
  const tool = context.tools.find((candidate) => candidate.name === name);
  if (tool === undefined) return undefined;
  const root = toolParameters(tool);
  const schema = resolveReferences(propertiesOfSchema(root).get(key), root);
  if (schema === undefined || schema.has("anyOf") || schema.has("oneOf")) return undefined;
  const type = schema.get("type");
  if (isPyList(type) && type.filter((item) => item !== "null").length > 1) return undefined;
  return inferSchemaType(schema, sglangVersion(context));
}

/** Follows the references of a schema to definitions. Members beside a reference win. */
function resolveReferences(
  schema: PyValue | undefined,
  root: PyValue | undefined,
): PyDict | undefined {
  if (!isPyDict(schema)) return undefined;
  let resolved = schema;
  const seen = new Set<string>();
  for (;;) {
    const reference = resolved.get("$ref");
    if (typeof reference !== "string") return resolved;
    if (seen.has(reference)) return undefined;
    seen.add(reference);
    const match = /^#\/(\$defs|definitions)\/([^]*)$/.exec(reference);
    const definitions = match !== null && isPyDict(root) ? root.get(match[1] ?? "") : undefined;
    const target = isPyDict(definitions) ? definitions.get(match?.[2] ?? "") : undefined;
    if (!isPyDict(target)) return resolved;
    const own = [...resolved].filter(([key]) => key !== "$ref");
    resolved = new Map([...target, ...own]);
  }
}
