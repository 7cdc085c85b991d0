import {
  parsePythonJson,
  type PyDict,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { evaluatePythonLiteral, type PythonLiteral } from "../../shared/python/python-literal.ts";
import { parsePythonInt } from "../../shared/python/python-number.ts";
import { parseUnescaped, toNumber } from "./glm-value.ts";
import { dependsOnOthers, isNumeric, jsonTypeOf, typesOfParameter } from "./glm47-schema.ts";

/**
 * Reads the arguments of a GLM 4.7 call as SGLang does since 0.5.23. Each parameter has the one
 * type that its schema allows, given the other arguments. A `string` keeps its text unchanged.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/glm47_moe_detector.py`.
 *
 * @throws PythonError if the engine raises, which loses all calls.
 */
export function readGlm47Arguments(
  pairs: Iterable<readonly [key: string, text: string]>,
  schema: PyValue | undefined,
): PythonLiteral {
  const stripped = [...pairs].map(([key, text]) => [pythonStrip(key), text] as const);
  const known = new Map<string, PyValue>();
  if (stripped.length > 1 && dependsOnOthers(schema)) {
    for (const [key, text] of stripped) {
      const { value } = readPair(key, text, schema, new Map());
      const types = typesOfParameter(schema, { key, value: text });
      if (typeof value === "string" || types?.has("string") !== true) known.set(key, value);
    }
  }
  const values = new Map<string, PyValue>();
  const foreign = new Map<string, boolean>();
  for (const [key, text] of stripped) {
    const { value, isJson } = readPair(key, text, schema, known);
    values.set(key, value);
    foreign.set(key, !isJson);
    known.set(key, value);
  }
  return { value: values, isJson: ![...foreign.values()].includes(true) };
}

function readPair(
  key: string,
  text: string,
  schema: PyValue | undefined,
  known: PyDict,
): PythonLiteral {
  const types = typesOfParameter(schema, { key, known });
  const [only] = types ?? [];
  const type =
    types !== undefined && isNumeric(types) ? "number" : types?.size === 1 ? only : undefined;
  const literal = readValue(text, type ?? "string");
  const { value } = literal;
  if (type === "string" && typeof value !== "string") return { value: text, isJson: true };
  if (type !== undefined && type !== null) return literal;
  const allowed = typesOfParameter(schema, { key, known, value });
  const asText = typesOfParameter(schema, { key, known, value: text });
  const isForbidden = allowed !== undefined && !allowed.has(jsonTypeOf(value));
  return isForbidden && asText?.has("string") === true ? { value: text, isJson: true } : literal;
}

function readValue(text: string, type: PyValue): PythonLiteral {
  let json = catchPython(() => parsePythonJson(text), "ValueError");
  if (json === undefined) json = catchPython(() => parseUnescaped(text), "ValueError");
  if (json !== undefined) return { value: coerceNumber(json, type), isJson: true };
  if (type === "string") {
    const isQuoted = text.length > 1 && /^["']/.test(text) && text.endsWith(text[0] ?? "");
    return { value: isQuoted ? text.slice(1, -1) : text, isJson: true };
  }
  const literal = catchPython(() => evaluatePythonLiteral(text), "ValueError", "SyntaxError");
  return literal ?? { value: text, isJson: true };
}

/** Converts a number that was written as a string. */
function coerceNumber(value: PyValue, type: PyValue): PyValue {
  if (typeof value !== "string") return value;
  if (type === "number") return toNumber(value);
  return type === "integer"
    ? (catchPython(() => parsePythonInt(value), "ValueError") ?? value)
    : value;
}
