import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  pythonLower,
  pythonStrip,
  PythonValueError,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { propertiesOfSchema } from "../../sglang/sglang-parameters.ts";
import { toolParameters } from "../../tool-definition.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { splitArgPairs } from "../../shared/tags/arg-pairs.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { findClosed } from "../../shared/tags/between-tags.ts";
import { callsNamed } from "../../sglang/base-json.ts";

const open = "<tool_call>";
const close = "</tool_call>";

/**
 * SGLang's detector for Spark 2.5. A block without a name is returned as text.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/spark25_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  let position = 0;
  for (const { inner, start, end } of findClosed(text, open, close)) {
    normal.push(text.slice(position, start));
    const call = readCall(inner, context);
    if (call === undefined) normal.push(text.slice(start, end));
    else calls.push(...toCompat(call, context, calls.length));
    position = end;
  }
  return { normalText: normal.join("") + text.slice(position), calls };
}

interface ReadCall {
  readonly name: string;
  readonly values: PyDict;
  /** The text between the arguments. */
  readonly rest: string;
}

function readCall(body: string, context: ParseContext): ReadCall | undefined {
  const argument = body.indexOf("<arg_key>");
  const name = pythonStrip(argument === -1 ? body : body.slice(0, argument));
  if (name === "") return undefined;
  const { pairs, rest } = splitArgPairs(body, { noGap: true });
  const values = new Map<string, PyValue>();
  for (const [key, text] of pairs) {
    if (key !== "") values.set(key, convert(text, pythonLower(typeOf(name, key, context))));
  }
  const bodyRest = argument === -1 ? "" : rest.slice(argument);
  return { name, values, rest: bodyRest };
}

function toCompat(
  { name, values }: ReadCall,
  context: ParseContext,
  toolIndex: number,
): CompatCall[] {
  if (callsNamed(name, values, context).length === 0) return [];
  return [{ name, argumentsText: writeCompact(values), toolIndex }];
}

function writeCompact(values: PyDict): string {
  return stringifyPythonJson(values, { ensureAscii: false, separators: [",", ":"] });
}

/** The declared type of a parameter; `string` if it has none. */
function typeOf(name: string, key: string, { tools }: ParseContext): string {
  for (const tool of tools) {
    if (tool.name !== name) continue;
    const definition = propertiesOfSchema(toolParameters(tool)).get(key);
    const type = isPyDict(definition) ? definition.get("type") : undefined;
    if (typeof type === "string") return type;
  }
  return "string";
}

function convert(text: string, type: string): PyValue {
  if (pythonLower(text) === "null") return null;
  const value = catchPython(() => readTyped(text, type), "ValueError");
  if (value !== undefined) return value;
  const json = catchPython(() => parsePythonJson(text), "ValueError");
  return json === undefined ? text : json;
}

/**
 * Reads the text as a value of the type.
 *
 * @throws PythonError `ValueError` if the text does not fit.
 */
function readTyped(text: string, type: string): PyValue {
  switch (type) {
    case "string":
    case "str":
    case "text":
      return text;
    case "integer":
    case "int":
      return parsePythonInt(text);
    case "number":
    case "float": {
      const number = parsePythonFloat(text);
      return Number.isInteger(number) ? BigInt(number) : number;
    }
    case "boolean":
    case "bool": {
      const lower = pythonLower(pythonStrip(text));
      if (["true", "1"].includes(lower)) return true;
      if (["false", "0"].includes(lower)) return false;
      throw new PythonValueError("invalid boolean");
    }
    default:
      return parsePythonJson(text);
  }
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const call = catchPython(() => readCall(inner, context));
  if (call === undefined) return [{ span, problem: malformed("expected a name") }];
  const isClean = call.rest.trim() === "";
  const problem = isClean ? {} : { problem: malformed("expected <arg_key> and <arg_value>") };
  const argumentsText = catchPython(() => writeCompact(call.values));
  return [
    {
      span,
      name: call.name,
      argumentValue: call.values,
      ...(argumentsText !== undefined && { argumentsText }),
      ...problem,
    },
  ];
}

/** Spark 2.5: GLM's tags without text between key and value. Arguments are written compactly. */
export const spark25 = defineParser({
  name: "spark25",
  readings: {
    sglang: sglangReading({
      marker: open,
      detect,
    }),
  },
  blocks: {
    open,
    close,
    begins: /^\s*[^\s<]*\s*(?:<arg_key>|$)/,
    read: readBlock,
  },
});
