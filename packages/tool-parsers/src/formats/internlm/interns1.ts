import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  PythonError,
  pythonStrip,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown, isKnownName } from "../../sglang/base-json.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<|action_start|> <|plugin|>";
const close = "<|action_end|>";

/**
 * SGLang's detector for Intern-S1. A block that is not JSON is skipped; any other error loses all
 * calls of the turn.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/internlm_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  const blocks = first === -1 ? [] : betweenTags(text, open, close);
  if (blocks.length === 0) return { normalText: text, calls: [] };
  const calls = blocks.flatMap((block) => {
    const json = pythonStrip(block);
    const entry = catchPython(() => parsePythonJson(json), "JSONDecodeError");
    return entry === undefined ? [] : readEntry(entry, context);
  });
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

function readEntry(entry: PyValue, context: ParseContext): CompatCall[] {
  if (!isPyDict(entry)) throw new PythonError("AttributeError", "the call is not an object");
  const name = entry.get("name") ?? null;
  const value = readArguments(entry);
  const argumentsText = writeJson(value);
  if (!pythonTruthy(name) || !isKnownName(name, context)) {
    if (!forwardsUnknown(context)) return [];
    throw new PythonError("KeyError", "the tool has no position");
  }
  return [{ name, argumentsText, toolIndex: context.toolPositions.get(name) ?? -1 }];
}

/** Reads the arguments. `parameters` wins if it is present; a falsy value means no arguments. */
function readArguments(entry: PyDict): PyValue {
  const value = entry.has("parameters") ? entry.get("parameters") : entry.get("arguments");
  return value !== undefined && pythonTruthy(value) ? value : new Map<string, PyValue>();
}

/** Intern-S1: `<|action_start|> <|plugin|>\n{"name": …, "parameters": …}<|action_end|>`. */
export const interns1 = defineParser({
  name: "interns1",
  markers: ["<|action_start|>"],
  readings: {
    sglang: sglangReading({
      marker: open,
      strips: true,
      catchesAll: true,
      detect,
    }),
  },
  json: { open, close, readArguments },
});
