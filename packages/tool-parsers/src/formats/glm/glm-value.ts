import {
  isPyDict,
  isPyList,
  parsePythonJson,
  PythonError,
  pythonLower,
  pythonStr,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { isSince, type SglangVersion } from "../../engine-version.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { evaluatePythonLiteral, type PythonLiteral } from "../../shared/python/python-literal.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { writeJson } from "../../shared/json/write-json.ts";

/**
 * Converts the text of an argument as GLM's detectors do: JSON, JSON that was escaped as a JSON
 * string, a Python literal, or the text itself. A parameter of type `string` gets the text of the value.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/glm4_moe_detector.py`
 * (`parse_arguments`, `_parse_argument_pairs`).
 *
 * @throws PythonError if the engine raises, which loses all calls.
 */
export function convertGlmValue(
  text: string,
  type: PyValue | undefined,
  version: SglangVersion,
): PythonLiteral {
  const literal = readValue(text, type, version);
  if (type !== "string") return literal;
  const { value } = literal;
  if (typeof value === "string") return literal;
  if (isPyDict(value) || isPyList(value)) {
    return { value: writeJson(value), isJson: true };
  }
  return { value: pythonStr(value), isJson: true };
}

function readValue(text: string, type: PyValue | undefined, version: SglangVersion): PythonLiteral {
  let json = catchPython(() => parsePythonJson(text), "ValueError");
  if (json === undefined) json = catchPython(() => parseUnescaped(text), "ValueError");
  if (json !== undefined) {
    const value = type === "number" && typeof json === "string" ? toNumber(json) : json;
    return { value, isJson: true };
  }
  if (type === "string" && isSince(version, "2026-08")) {
    const quoted = /^(["'])[^]*\1$/.test(text) && text.length > 1;
    return { value: quoted ? text.slice(1, -1) : text, isJson: true };
  }
  const literal = catchPython(() => evaluatePythonLiteral(text), "ValueError", "SyntaxError");
  return literal ?? { value: text, isJson: true };
}

/** Reads JSON that was escaped as a JSON string. */
export function parseUnescaped(text: string): PyValue {
  const wrapped = parsePythonJson(`{"tmp": "${text}"}`);
  const inner = isPyDict(wrapped) ? wrapped.get("tmp") : undefined;
  if (typeof inner !== "string") {
    throw new PythonError("TypeError", "the JSON object must be str, bytes or bytearray");
  }
  return parsePythonJson(inner);
}

/**
 * Reads the text as a number: an int unless it has a point or an exponent. Other text is returned
 * unchanged.
 */
export function toNumber(text: string): PyValue {
  const isFloat = text.includes(".") || pythonLower(text).includes("e");
  const read = isFloat ? () => parsePythonFloat(text) : () => parsePythonInt(text);
  return catchPython<PyValue>(read, "ValueError") ?? text;
}
