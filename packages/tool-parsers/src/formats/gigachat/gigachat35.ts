import {
  parsePythonJson,
  type PyDict,
  pythonRstrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { pythonPattern } from "../../shared/text/python-pattern.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { findByHead } from "../../shared/tags/between-tags.ts";
import { callsNamed } from "../../sglang/base-json.ts";

/** The bar is outside ASCII. A constant lets the patterns be written in ASCII alone. */
const bar = "｜";
const open = "<｜GCML｜tool_calls>";
const close = "</｜GCML｜tool_calls>";
const invokeOpen = "<｜GCML｜invoke";
const invokeClose = "</｜GCML｜invoke>";
const parameterClose = "</｜GCML｜parameter>";
const invokeHead = pythonPattern(String.raw`<${bar}GCML${bar}invoke\s+name="([^"]*)"\s*>`, "g");
const parameterHead = pythonPattern(
  String.raw`<${bar}GCML${bar}parameter\s+name="([^"]*)"\s+string="(true|false)"\s*>`,
  "g",
);
const endMarkers = ["<|message_sep|>", "</s>"];

interface Invoke {
  readonly name: string;
  readonly values: PyDict;
}

/**
 * SGLang's detector for GigaChat 3.5: the calls of the first section.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/gigachat35_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: stripMarkers(text), calls: [] };
  const start = first + open.length;
  const end = text.indexOf(close, start);
  const invokes = findInvokes(text.slice(start, end === -1 ? text.length : end));
  if (invokes.length === 0) return { normalText: stripMarkers(text), calls: [] };
  const normalText = pythonRstrip(stripMarkers(text.slice(0, first)), "\n");
  const calls = invokes.flatMap(({ name, values }) => callsNamed(name, values, context));
  return { normalText, calls };
}

/** Drops markers at the end of the text, and the white space after them. */
function stripMarkers(text: string): string {
  let rest = pythonRstrip(text);
  if (!endMarkers.some((marker) => rest.endsWith(marker))) return text;
  for (;;) {
    const marker = endMarkers.find((candidate) => rest.endsWith(candidate));
    if (marker === undefined) return rest;
    rest = rest.slice(0, rest.length - marker.length);
  }
}

function findInvokes(text: string): Invoke[] {
  return findByHead(text, invokeHead, invokeClose).map(({ head, inner }) => ({
    name: head[1] ?? "",
    values: readParameters(inner),
  }));
}

function readParameters(body: string): PyDict {
  const values = new Map<string, PyValue>();
  for (const { head, inner } of findByHead(body, parameterHead, parameterClose)) {
    const [, key = "", isString] = head;
    const json =
      isString === "true" ? undefined : catchPython(() => parsePythonJson(inner), "ValueError");
    values.set(key, json === undefined ? inner : json);
  }
  return values;
}

function readBlock({ span, inner }: Frame): Block[] {
  const whole = `${invokeOpen}${inner}${invokeClose}`;
  const invoke = catchPython(() => findInvokes(whole)[0]);
  if (invoke === undefined) return [{ span, problem: malformed("expected a name") }];
  const openCount = inner.split("<｜GCML｜parameter").length - 1;
  const problem =
    openCount === invoke.values.size ? {} : { problem: malformed(`expected ${parameterClose}`) };
  return [{ span, name: invoke.name, argumentValue: invoke.values, ...problem }];
}

/** GigaChat 3.5: `<｜GCML｜invoke name="…">` elements inside `<｜GCML｜tool_calls>`. */
export const gigachat35 = defineParser({
  name: "gigachat35",
  markers: [open],
  closers: new RegExp(close, "g"),
  readings: {
    sglang: sglangReading({
      release: { stops: [open, ...endMarkers], strips: true },
      marker: open,
      detect,
    }),
  },
  blocks: {
    open: invokeOpen,
    close: invokeClose,
    begins: /^\s+name="|^$/,
    read: readBlock,
  },
});
