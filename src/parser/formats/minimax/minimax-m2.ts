import { parsePythonJson } from "../../../python/json/json-parse.ts";
import { pythonLower } from "../../../python/text/lower.ts";
import { PythonError } from "../../../python/python-error.ts";
import { pythonStrip } from "../../../python/text/strip.ts";
import type { PyDict, PyValue } from "../../../python/value.ts";
import { isPyDict } from "../../../python/value.ts";
import type { Block } from "../../attempt.ts";
import type { EngineResult } from "../../grammar.ts";
import { defineParser } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import {
  parsePythonFloat,
  parsePythonInt,
  truncateFloat,
} from "../../shared/python/python-number.ts";
import { pythonTextEnd } from "../../shared/text/python-pattern.ts";
import { typesOfSchema } from "../../shared/schema/schema-type.ts";
import type { Frame } from "../../shared/tags/tag-blocks.ts";
import { findTagBlocks, malformed, unclosed } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { parseBaseJson } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmMinimaxM2 } from "./vllm-minimax-m2.ts";

const open = "<minimax:tool_call>";
const close = "</minimax:tool_call>";
const invokeOpen = '<invoke name="';
const invokeClose = "</invoke>";
const parameterOpen = '<parameter name="';
const parameterClose = "</parameter>";

/**
 * SGLang's detector for MiniMax M2. The text outside closed blocks is kept; inside a block closing tags
 * may be missing.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/minimax_m2.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const normal: string[] = [];
  const calls: CompatCall[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(open, position);
    const end = start === -1 ? -1 : text.indexOf(close, start);
    if (end === -1) break;
    normal.push(text.slice(position, start));
    const blockEnd = end + close.length;
    // What is not closed reaches over the closing tag of the block.
    const block = text.slice(start, blockEnd);
    for (const { text: invoke } of splitOpen(block, invokeOpen, invokeClose)) {
      const call = readCall(invoke, context);
      if (call === undefined) continue;
      const entry = new Map<string, PyValue>([
        ["name", call.name],
        ["arguments", call.values],
      ]);
      calls.push(...(catchPython(() => parseBaseJson(entry, context)) ?? []));
    }
    position = blockEnd;
  }
  return { normalText: normal.join("") + text.slice(position), calls };
}

/** A piece of text from behind an opening tag to its closing tag, or to the end. */
interface OpenText {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly closed: boolean;
}

function splitOpen(text: string, openTag: string, closeTag: string): OpenText[] {
  const found: OpenText[] = [];
  let start = text.indexOf(openTag);
  while (start !== -1) {
    const bodyStart = start + openTag.length;
    const bodyEnd = text.indexOf(closeTag, bodyStart);
    const closed = bodyEnd !== -1;
    const end = closed ? bodyEnd + closeTag.length : text.length;
    found.push({ text: text.slice(bodyStart, closed ? bodyEnd : text.length), start, end, closed });
    start = closed ? text.indexOf(openTag, end) : -1;
  }
  return found;
}

/** @throws PythonError where a value cannot be converted, which the engine lets out. */
function readCall(
  invoke: string,
  context: ParseContext,
): { name: string; values: PyDict } | undefined {
  const nameEnd = invoke.indexOf('">');
  if (nameEnd === -1) return undefined;
  const name = pythonStrip(invoke.slice(0, nameEnd));
  const body = invoke.slice(nameEnd + 2);
  const values = new Map<string, PyValue>();
  for (const parameter of splitOpen(body, parameterOpen, parameterClose)) {
    // Python's `$` stops before a line break that ends the text.
    const { text: whole, closed } = parameter;
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
    throw new PythonError("TypeError", "the properties are no object");
  }
  return new Set(["string"]);
}

type Conversion = (text: string) => PyValue | undefined;

/** How the types convert, the most particular one first; `undefined` where the text does not fit. */
const conversions: readonly (readonly [names: readonly string[], convert: Conversion])[] = [
  [["integer", "int"], (text) => catchPython(() => parsePythonInt(text), "ValueError")],
  [["number", "float"], (text) => catchPython(() => readNumber(text), "ValueError")],
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

function readNumber(text: string): PyValue {
  const value = parsePythonFloat(text);
  const truncated = truncateFloat(value);
  return Number(truncated) === value ? truncated : value;
}

function readBoolean(text: string): boolean | undefined {
  const lower = pythonStrip(pythonLower(text));
  if (["true", "1", "yes", "on"].includes(lower)) return true;
  return ["false", "0", "no", "off"].includes(lower) ? false : undefined;
}

function readBlocks({ span, inner, innerStart }: Frame, context: ParseContext): Block[] {
  const invokes = splitOpen(inner, invokeOpen, invokeClose);
  if (invokes.length === 0) return [{ span, problem: malformed(`expected ${invokeOpen}`) }];
  return invokes.map((invoke, index) => {
    const start = index === 0 ? span[0] : innerStart + invoke.start;
    const next = invokes[index + 1];
    const end = next === undefined ? span[1] : innerStart + next.start;
    return readBlock([start, end], invoke, context);
  });
}

function readBlock(span: Block["span"], invoke: OpenText, context: ParseContext): Block {
  const call = catchPython(() => readCall(invoke.text, context));
  if (call === undefined) return { span, problem: malformed("the call cannot be read") };
  const base = { span, name: call.name, argumentValue: call.values };
  if (!invoke.closed) return { ...base, problem: unclosed(invokeClose) };
  const parameters = splitOpen(invoke.text, parameterOpen, parameterClose);
  if (parameters.every(({ closed, text }) => closed && text.includes('">'))) return base;
  return { ...base, problem: malformed(`expected ${parameterClose}`) };
}

/** MiniMax M2: `<invoke name="…"><parameter name="…">value</parameter></invoke>` in a block. */
export const minimaxM2 = defineParser({
  name: "minimax-m2",
  aliases: ["minimax_m2"],
  markers: [open],
  readings: {
    sglang: sglangReading({
      release: { stops: [open], strips: false },
      hasToolCall: (text) => text.includes(open),
      detect,
    }),
    vllm: vllmMinimaxM2,
  },
  findBlocks: (text, context) =>
    findTagBlocks(text, {
      open,
      close,
      begins: /^\s*(?:<invoke|$)/,
      read: (frame) => readBlocks(frame, context),
    }),
});
