import { isPyDict, type PyDict, pythonStrip } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { schemaOfTool, type ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { requireJson, type PythonLiteral } from "../../shared/python/python-literal.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { splitArgPairs } from "../../shared/tags/arg-pairs.ts";
import { typesOfParameter } from "../glm/glm47-schema.ts";
import { readGlm47Arguments } from "../glm/glm47-value.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { callsNamed } from "../../sglang/base-json.ts";
import { findClosed } from "../../shared/tags/between-tags.ts";

const open = "<iquest_tool_call>";
const close = "</iquest_tool_call>";

/**
 * SGLang's detector for IQuest Q1. A malformed block is returned as text.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/iquest_q1_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  let contentStart = 0;
  for (const { inner, start, end } of findClosed(text, open, close)) {
    const call = readCall(inner, context);
    if (call === undefined) continue;
    for (const found of toCompat(call, context)) calls.push({ ...found, toolIndex: calls.length });
    normal.push(text.slice(contentStart, start));
    contentStart = end;
  }
  return { normalText: normal.join("") + text.slice(contentStart), calls };
}

interface ReadCall {
  readonly name: string;
  readonly literal: PythonLiteral & { readonly value: PyDict };
}

function toCompat({ name, literal }: ReadCall, context: ParseContext): CompatCall[] {
  const isReported = context.toolPositions.has(name) || context.forwardUnknownTools;
  return callsNamed(name, isReported ? requireJson(literal) : literal.value, context);
}

/** Reads a call. Returns `undefined` if the call has no name, or if text stands between the arguments. */
function readCall(body: string, context: ParseContext): ReadCall | undefined {
  const argument = body.indexOf("<arg_key>");
  const name = pythonStrip(argument === -1 ? body : body.slice(0, argument));
  if (name === "") return undefined;
  const raw = argument === -1 ? "" : body.slice(argument);
  const { pairs, rest } = splitArgPairs(raw, { spelledBreaks: true });
  const hasEmptyKey = pairs.some(([key]) => pythonStrip(key) === "");
  if (pythonStrip(rest) !== "" || hasEmptyKey) return undefined;
  const schema = schemaOfTool(context, name);
  const { value, isJson } = readGlm47Arguments(pairs, schema);
  const values = new Map(isPyDict(value) ? value : []);
  for (const [rawKey, text] of pairs) {
    const key = pythonStrip(rawKey);
    const types = typesOfParameter(schema, { key, known: values });
    if (types?.size === 1 && types.has("string")) values.set(key, text);
  }
  return { name, literal: { value: values, isJson } };
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const call = catchPython(() => readCall(inner, context));
  if (call?.literal.isJson !== true) {
    return [
      { span, problem: malformed("expected a name, and pairs of <arg_key> and <arg_value>") },
    ];
  }
  return [{ span, name: call.name, argumentValue: call.literal.value }];
}

/** IQuest Q1: GLM 4.7's keys and values between tags of its own. */
export const iquestQ1 = defineParser({
  name: "iquest_q1",
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
