import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  PythonError,
  pythonLower,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonInt, parsePythonNumber } from "../../shared/python/python-number.ts";
import { pythonTextEnd } from "../../shared/text/python-pattern.ts";
import { typesOfSchema } from "../../shared/schema/schema-type.ts";
import { malformed, unclosed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmMinimaxM2 } from "./vllm-minimax-m2.ts";
import { callsNamed } from "../../sglang/base-json.ts";
import {
  findOpened,
  findClosed,
  outsideTags,
  divideSpan,
  type TagText,
} from "../../shared/tags/between-tags.ts";

const open = "<minimax:tool_call>";
const close = "</minimax:tool_call>";
const invokeOpen = '<invoke name="';
const invokeClose = "</invoke>";
const parameterOpen = '<parameter name="';
const parameterClose = "</parameter>";

/**
 * SGLang's detector for MiniMax M2. The text outside closed blocks is kept. Inside a block, closing
 * tags may be missing.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/minimax_m2.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const calls: CompatCall[] = [];
  for (const { start, end } of findClosed(text, open, close)) {
    // An element that is not closed includes the closing tag of the block.
    const block = text.slice(start, end);
    for (const { inner: invoke } of findOpened(block, invokeOpen, invokeClose)) {
      const call = readCall(invoke, context);
      if (call === undefined) continue;
      calls.push(...(catchPython(() => callsNamed(call.name, call.values, context)) ?? []));
    }
  }
  return { normalText: outsideTags(text, open, close), calls };
}

/**
 * Reads a call.
 *
 * @throws PythonError if a value cannot be converted. The engine does not catch this exception.
 */
function readCall(
  invoke: string,
  context: ParseContext,
): { name: string; values: PyDict } | undefined {
  const nameEnd = invoke.indexOf('">');
  if (nameEnd === -1) return undefined;
  const name = pythonStrip(invoke.slice(0, nameEnd));
  const body = invoke.slice(nameEnd + 2);
  const values = new Map<string, PyValue>();
  for (const parameter of findOpened(body, parameterOpen, parameterClose)) {
    // Python's `$` stops before a line break at the end of the text.
    const { inner: whole, closed } = parameter;
    const text = closed ? whole : whole.slice(0, pythonTextEnd(whole));
    const keyEnd = text.indexOf('">');
    if (keyEnd === -1) continue;
    const key = pythonStrip(text.slice(0, keyEnd));
    const value = pythonStrip(text.slice(keyEnd + 2), "\n");
    values.set(key, convert(value, findTypes(name, key, context)));
  }
  return { name, values };
}

function findTypes(name: string, key: string, context: ParseContext): ReadonlySet<string> {
  for (const tool of context.tools) {
    const parameters = sglangParameters(tool, context);
    if (tool.name !== name || !isPyDict(parameters) || !parameters.has("properties")) continue;
    const properties = parameters.get("properties");
    if (isPyDict(properties)) return typesOfSchema(properties.get(key));
    throw new PythonError("TypeError", "the properties are not an object");
  }
  return new Set(["string"]);
}

type Conversion = (text: string) => PyValue | undefined;

/**
 * The conversions of a text, by the names of the type, most specific type first. A conversion returns `undefined` if
 * the text does not fit.
 */
const conversions: readonly (readonly [names: readonly string[], convert: Conversion])[] = [
  [["integer", "int"], (text) => catchPython(() => parsePythonInt(text), "ValueError")],
  [["number", "float"], (text) => catchPython(() => parsePythonNumber(text), "ValueError")],
  [["boolean", "bool"], readBoolean],
  [["object", "array"], (text) => catchPython(() => parsePythonJson(text), "JSONDecodeError")],
  [["string", "str", "text"], (text) => text],
];

function convert(text: string, types: ReadonlySet<string>): PyValue {
  const wanted = new Set([...types].map(pythonLower));
  if (wanted.has("null") || /^(?:null|none|nil)$/.test(pythonLower(text))) return null;
  for (const [names, read] of conversions) {
    if (!names.some((name) => wanted.has(name))) continue;
    const value = read(text);
    if (value !== undefined) return value;
  }
  const json = catchPython(() => parsePythonJson(text), "JSONDecodeError");
  return json === undefined ? text : json;
}

function readBoolean(text: string): boolean | undefined {
  const lower = pythonStrip(pythonLower(text));
  if (["true", "1", "yes", "on"].includes(lower)) return true;
  return ["false", "0", "no", "off"].includes(lower) ? false : undefined;
}

function readBlocks({ span, inner, innerStart }: Frame, context: ParseContext): Block[] {
  const invokes = findOpened(inner, invokeOpen, invokeClose);
  if (invokes.length === 0) return [{ span, problem: malformed(`expected ${invokeOpen}`) }];
  const starts = invokes.map(({ start }) => innerStart + start);
  return divideSpan(span, starts).map((part, index) =>
    readBlock(part, invokes[index] as TagText, context),
  );
}

function readBlock(span: Block["span"], invoke: TagText, context: ParseContext): Block {
  const call = catchPython(() => readCall(invoke.inner, context));
  if (call === undefined) return { span, problem: malformed("the call cannot be read") };
  const base = { span, name: call.name, argumentValue: call.values };
  if (!invoke.closed) return { ...base, problem: unclosed(invokeClose) };
  const parameters = findOpened(invoke.inner, parameterOpen, parameterClose);
  if (parameters.every(({ closed, inner }) => closed && inner.includes('">'))) return base;
  return { ...base, problem: malformed(`expected ${parameterClose}`) };
}

/** MiniMax M2: `<invoke name="…"><parameter name="…">value</parameter></invoke>` in a block. */
export const minimaxM2 = defineParser({
  name: "minimax-m2",
  aliases: ["minimax_m2"],
  readings: {
    sglang: sglangReading({
      marker: open,
      detect,
    }),
    vllm: vllmMinimaxM2,
  },
  blocks: {
    open,
    close,
    begins: /^\s*(?:<invoke|$)/,
    read: readBlocks,
  },
});
