import { pythonStrip } from "../../../../python-values/src/index.ts";
import {
  findHunyuanSchema,
  readHunyuanValue,
  alternativesOf,
  deserialize,
} from "./hunyuan-value.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { findArgPairs } from "../../shared/tags/arg-pairs.ts";
import { vllmReading, type VllmCall, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const sectionOpen = "<tool_calls>";
const open = "<tool_call>";
const close = "</tool_call>";
const separator = "<tool_sep>";

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const first = text.indexOf(sectionOpen);
  if (first === -1) return undefined;
  const calls = catchPython(() => splitCalls(text).map((call) => readCall(call, context))) ?? [];
  return { content: text.slice(0, first), calls };
}

/** The inside of every call; the last one may be cut off. */
function splitCalls(text: string): string[] {
  const whole: string[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(open, position);
    const nameEnd = start === -1 ? -1 : text.indexOf(separator, start + open.length);
    const end = nameEnd === -1 ? -1 : text.indexOf(close, nameEnd + separator.length);
    if (end === -1) break;
    whole.push(text.slice(start + open.length, end));
    position = end + close.length;
  }
  const restStart = whole.length === 0 ? 0 : text.lastIndexOf(close) + close.length;
  const cutStart = text.indexOf(open, restStart);
  const cut = cutStart === -1 ? "" : text.slice(cutStart + open.length);
  return cut.includes(separator) ? [...whole, cut] : whole;
}

/** Reads a call. @throws PythonError if an argument cannot be read. */
function readCall(inner: string, context: ParseContext): VllmCall {
  const nameEnd = inner.indexOf(separator);
  const name = pythonStrip(inner.slice(0, nameEnd));
  const body = pythonStrip(inner.slice(nameEnd + separator.length));
  const values = new Map(
    findArgPairs(body, { unicodeSpace: true }).map(([key, text]) => {
      const schema = findHunyuanSchema(name, key, context);
      const known = context.engineVersion === "0.24" ? schema : alternativesOf(schema);
      return [key, readHunyuanValue(text, known, deserialize)] as const;
    }),
  );
  return { name, argumentsText: writeJson(values) };
}

/**
 * vLLM's parser for Hunyuan 3: a call that is cut off counts, and one unreadable argument loses all
 * calls.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/hy_v3_tool_parser.py`.
 */
export const vllmHunyuan = vllmReading({
  marker: sectionOpen,
  extract,
});
