import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  pythonLower,
  pythonStr,
  pythonStrip,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { evaluatePythonLiteral } from "../../shared/python/python-literal.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { findArgPairs } from "../../shared/tags/arg-pairs.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmPoolsideV1 } from "./vllm-poolside-v1.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<tool_call>";
const close = "</tool_call>";
const textTypes: ReadonlySet<string> = new Set(["string", "str", "text", "enum"]);

/**
 * SGLang's detector for Poolside's Laguna: GLM's tags, with values that are read by the tool's
 * schema. Unknown tools are always dropped.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/poolside_v1_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const calls = betweenTags(text, open, close).flatMap((body): CompatCall[] => {
    const name = readName(body);
    const toolIndex = context.toolPositions.get(name);
    if (toolIndex === undefined) return [];
    const values = readArguments(body, name, context);
    return [{ name, argumentsText: writeJson(values), toolIndex }];
  });
  return { normalText: text.slice(0, first), calls };
}

/** The name of a call. It ends with its line, or at the first argument. */
function readName(body: string): string {
  return pythonStrip(body.slice(0, /\n|<arg_key>/.exec(body)?.index ?? body.length));
}

function readArguments(body: string, name: string, context: ParseContext): PyDict {
  const schemas = findSchemas(name, context);
  return new Map(
    findArgPairs(body, { keyHoldsTags: false }).map(([rawKey, rawValue]) => {
      const key = pythonStrip(rawKey);
      const value = rawValue.startsWith("\n") ? rawValue.slice(1) : rawValue;
      const text = value.endsWith("\n") ? value.slice(0, -1) : value;
      return [key, convert(text, isPyDict(schemas) ? schemas.get(key) : undefined)] as const;
    }),
  );
}

function findSchemas(name: string, context: ParseContext): PyValue | undefined {
  for (const tool of context.tools) {
    const parameters = sglangParameters(tool, context);
    const isFunction = (tool.openai.get("type") ?? "function") === "function";
    if (tool.name === name && isFunction && isPyDict(parameters)) {
      return parameters.get("properties");
    }
  }
  return undefined;
}

function convert(text: string, schema: PyValue | undefined): PyValue {
  const type = isPyDict(schema) ? pythonLower(pythonStr(schema.get("type") ?? "")) : "";
  if (textTypes.has(type)) return text;
  const json = catchPython(() => {
    const value = parsePythonJson(text);
    stringifyPythonJson(value);
    return value;
  }, "ValueError");
  if (json !== undefined || type === "") return json === undefined ? text : json;
  const readLiteral = (): { value: PyValue } | undefined => {
    const { value, isJson } = evaluatePythonLiteral(text);
    if (isJson) stringifyPythonJson(value);
    return isJson ? { value } : undefined;
  };
  const literal = catchPython(readLiteral, "ValueError", "SyntaxError", "TypeError");
  return literal === undefined ? text : literal.value;
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const name = readName(inner);
  const argumentValue = catchPython(() => readArguments(inner, name, context));
  if (argumentValue === undefined)
    return [{ span, name, problem: malformed("the arguments cannot be read") }];
  const keyCount = inner.split("<arg_key>").length - 1;
  const problem =
    keyCount === argumentValue.size
      ? {}
      : { problem: malformed("expected pairs of <arg_key> and <arg_value>") };
  return [{ span, name, argumentValue, ...problem }];
}

/** Poolside's Laguna: looks like GLM 4.5. The line break after the name may be missing. */
export const poolsideV1 = defineParser({
  name: "poolside_v1",
  readings: {
    sglang: sglangReading({
      marker: open,
      detect,
    }),
    vllm: vllmPoolsideV1,
  },
  blocks: {
    open,
    close,
    begins: /^[^\s<]*\s*(?:<arg_key>|$)/,
    read: readBlock,
  },
});
