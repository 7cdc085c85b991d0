import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  PythonError,
  pythonLower,
  pythonStrip,
  type PyValue,
  unescapeHtml,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import {
  evaluatePythonLiteral,
  jsonLiteral,
  requireJson,
  type PythonLiteral,
} from "../../shared/python/python-literal.ts";
import { parsePythonInt, parsePythonNumber } from "../../shared/python/python-number.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown, callsNamed } from "../../sglang/base-json.ts";
import {
  booleanTypes,
  floatPattern,
  intPattern,
  jsonTypePattern,
  textTypes,
} from "./qwen3-coder-value.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { findNamedTexts } from "../../shared/tags/named-texts.ts";
import { vllmMimo } from "./vllm-qwen3-coder.ts";
import { findClosed } from "../../shared/tags/between-tags.ts";

const open = "<tool_call>";
const close = "</tool_call>";

/** A call that was read. `isJson` is false if JSON cannot represent an argument. */
interface ReadCall {
  readonly name: string;
  readonly values: PyDict;
  readonly isJson: boolean;
}

/**
 * SGLang's detector for MiMo: Qwen3-Coder's tags, all closed, with HTML escapes in the values. The
 * block of a call to an unknown tool is returned as text.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/mimo_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const normal = [text.slice(0, first)];
  const calls: CompatCall[] = [];
  let lastEnd = first;
  for (const { inner, end } of findClosed(text, open, close)) {
    const call = readCall(inner, context);
    if (call !== undefined) {
      const isKnown = context.toolPositions.has(call.name);
      if (isKnown || forwardsUnknown(context)) calls.push(...toCompat(call, context));
      else normal.push(text.slice(lastEnd, end));
    }
    lastEnd = end;
  }
  return { normalText: normal.join(""), calls };
}

function toCompat({ name, values, isJson }: ReadCall, context: ParseContext): CompatCall[] {
  return callsNamed(name, requireJson({ value: values, isJson }), context);
}

function readCall(body: string, context: ParseContext): ReadCall | undefined {
  const [found] = findNamedTexts(body, "<function=", "</function>");
  if (found === undefined) return undefined;
  const name = pythonStrip(found.name);
  const values = new Map<string, PyValue>();
  let isJson = true;
  for (const parameter of findNamedTexts(found.text, "<parameter=", "</parameter>")) {
    const key = pythonStrip(parameter.name);
    const literal = convert(unescapeHtml(parameter.text), () => findType(name, key, context));
    isJson &&= literal.isJson;
    values.set(key, literal.value);
  }
  return { name, values, isJson };
}

/**
 * The declared type of a parameter.
 *
 * @throws PythonError if the schema has another form than the engine expects.
 */
function findType(name: string, key: string, context: ParseContext): string {
  for (const tool of context.tools) {
    if (tool.name !== name) continue;
    const properties = getFrom(sglangParameters(tool, context) ?? null, "properties");
    if (properties === undefined || !isPyDict(properties) || !properties.has(key)) continue;
    const type = getFrom(properties.get(key) ?? null, "type") ?? "string";
    if (typeof type === "string") return type;
    throw new PythonError("AttributeError", "a type is not a string");
  }
  return "string";
}

function getFrom(value: PyValue, key: string): PyValue | undefined {
  if (isPyDict(value)) return value.get(key);
  throw new PythonError("AttributeError", "a schema is not an object");
}

function convert(text: string, readType: () => string): PythonLiteral {
  if (pythonLower(text) === "null") return jsonLiteral(null);
  const type = readType();
  if (textTypes.has(type)) return jsonLiteral(text);
  if (intPattern.test(type)) {
    return jsonLiteral(catchPython<PyValue>(() => parsePythonInt(text), "ValueError") ?? text);
  }
  if (floatPattern.test(type))
    return jsonLiteral(catchPython(() => parsePythonNumber(text), "ValueError") ?? text);
  if (booleanTypes.has(type)) return jsonLiteral(pythonLower(text) === "true");
  const value = jsonTypePattern.test(type)
    ? catchPython(() => parsePythonJson(text), "ValueError", "TypeError")
    : undefined;
  if (value !== undefined) return jsonLiteral(value);
  const literal = catchPython(
    () => evaluatePythonLiteral(text),
    "ValueError",
    "SyntaxError",
    "TypeError",
  );
  return literal ?? jsonLiteral(text);
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const call = catchPython(() => readCall(inner, context));
  if (call === undefined) {
    return [{ span, problem: malformed("expected <function=name>…</function>") }];
  }
  const { name, values, isJson } = call;
  if (!isJson) return [{ span, name, problem: malformed("an argument cannot be written as JSON") }];
  const isClosed = inner.split("<parameter=").length === inner.split("</parameter>").length;
  const problem = isClosed ? {} : { problem: malformed("expected </parameter>") };
  return [{ span, name, argumentValue: values, ...problem }];
}

/** MiMo: `<function=name><parameter=key>value</parameter></function>`, escaped as HTML. */
export const mimo = defineParser({
  name: "mimo",
  markers: ["<function="],
  readings: {
    sglang: sglangReading({
      marker: open,
      detect,
    }),
    vllm: vllmMimo,
  },
  blocks: {
    open,
    close,
    begins: /^\s*(?:<function=|$)/,
    read: readBlock,
  },
});
