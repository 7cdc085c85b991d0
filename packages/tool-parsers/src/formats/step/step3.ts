import {
  parsePythonJson,
  type PyDict,
  pythonStrip,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import {
  evaluatePythonLiteral,
  requireJson,
  type PythonLiteral,
} from "../../shared/python/python-literal.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import { forwardsUnknown, callsNamed } from "../../sglang/base-json.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmStep3 } from "./vllm-step3.ts";
import { requireDict } from "../../shared/schema/require-dict.ts";

const sectionOpen = "<｜tool_calls_begin｜>";
const sectionClose = "<｜tool_calls_end｜>";
const open = "<｜tool_call_begin｜>";
const close = "<｜tool_call_end｜>";
const separator = "<｜tool_sep｜>";
const invokeHead = /<steptml:invoke name="([^"]+)">/g;
const invokeClose = "</steptml:invoke>";
const parameterPattern = /<steptml:parameter name="([^"]+)">([^<]*)<\/steptml:parameter>/g;

/** A call that was read. `isJson` is false if JSON cannot represent an argument. */
interface ReadCall {
  readonly name: string;
  readonly values: PyDict;
  readonly isJson: boolean;
}

/**
 * SGLang's detector for Step-3. Both markers of the section are required, values contain no `<`,
 * and the body of a call must not be empty.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/step3_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const start = text.indexOf(sectionOpen);
  const end = start === -1 ? -1 : text.indexOf(sectionClose, start + sectionOpen.length);
  if (end === -1) return { normalText: text, calls: [] };
  const section = text.slice(start + sectionOpen.length, end);
  const calls = betweenTags(section, open, close).flatMap((inner) => {
    const call = readCall(inner, context);
    if (call === undefined) return [];
    const isReported = context.toolPositions.has(call.name) || forwardsUnknown(context);
    if (isReported) requireJson({ value: call.values, isJson: call.isJson });
    return callsNamed(call.name, call.values, context);
  });
  return { normalText: text.slice(0, start) + text.slice(end + sectionClose.length), calls };
}

function readCall(inner: string, context: ParseContext): ReadCall | undefined {
  const typeEnd = inner.indexOf(separator);
  if (typeEnd === -1 || pythonStrip(inner.slice(0, typeEnd)) !== "function") return undefined;
  const invoke = findInvoke(inner.slice(typeEnd + separator.length));
  if (invoke === undefined) return undefined;
  const { name, body } = invoke;
  const values = new Map<string, PyValue>();
  let isJson = true;
  for (const [, key = "", raw = ""] of body.matchAll(parameterPattern)) {
    const text = pythonStrip(raw);
    const literal = isTyped(name, key, context) ? readLiteral(text) : { value: text, isJson: true };
    isJson &&= literal.isJson;
    values.set(key, literal.value);
  }
  return { name, values, isJson };
}

/** The first invoke element with a body. */
function findInvoke(text: string): { name: string; body: string } | undefined {
  for (const match of text.matchAll(invokeHead)) {
    const bodyStart = match.index + match[0].length;
    const bodyEnd = text.indexOf(invokeClose, bodyStart + 1);
    if (bodyEnd === -1) return undefined;
    return { name: match[1] ?? "", body: text.slice(bodyStart, bodyEnd) };
  }
  return undefined;
}

/** True if the schema declares a type other than `string` for the parameter. */
function isTyped(name: string, key: string, context: ParseContext): boolean {
  if (context.tools.length === 0) return true;
  const position = context.toolPositions.get(name);
  const tool = position === undefined ? undefined : context.tools[position];
  const parameters = tool === undefined ? null : (sglangParameters(tool, context) ?? null);
  if (!pythonTruthy(parameters)) return false;
  const properties = requireDict(parameters).get("properties");
  const schema = properties === undefined ? undefined : requireDict(properties).get(key);
  const type = schema === undefined ? undefined : requireDict(schema).get("type");
  return type !== undefined && type !== "string" && pythonTruthy(type);
}

function readLiteral(text: string): PythonLiteral {
  const json = catchPython(() => parsePythonJson(text));
  if (json !== undefined) return { value: json, isJson: true };
  return catchPython(() => evaluatePythonLiteral(text)) ?? { value: text, isJson: true };
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const call = catchPython(() => readCall(inner, context));
  if (call === undefined) {
    return [{ span, problem: malformed(`expected function${separator} and an invoke element`) }];
  }
  const { name, values, isJson } = call;
  if (!isJson) return [{ span, name, problem: malformed("an argument cannot be written as JSON") }];
  const isWhole = inner.split("<steptml:parameter").length - 1 === values.size;
  const problem = isWhole ? {} : { problem: malformed("a parameter cannot be read") };
  return [{ span, name, argumentValue: values, ...problem }];
}

/** Step-3: steptml elements between control tokens. */
export const step3 = defineParser({
  name: "step3",
  closers: /<｜tool_calls_end｜>/g,
  markers: [sectionOpen],
  readings: {
    sglang: sglangReading({
      marker: sectionOpen,
      catchesAll: true,
      detect,
    }),
    vllm: vllmStep3,
  },
  blocks: {
    open,
    close,
    begins: /^\s*(?:function|$)/,
    read: readBlock,
  },
});
