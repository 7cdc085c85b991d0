import {
  isPyDict,
  isPyList,
  PythonError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { cohereClose as close, cohereOpen as open, findCohereBlocks } from "./blocks.ts";
import { isSince } from "../../engine-version.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { parseOrjson } from "../../shared/json/orjson.ts";
import type { ParseContext } from "../../parse-context.ts";
import { CompletionAssertion, parsePartialJson } from "../../shared/json/partial-json.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parseBaseJson } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { cohereReading } from "./vllm-cohere.ts";

/**
 * SGLang's detector for Cohere Command A. Reads the first block only, and completes JSON that is
 * cut off.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/cohere_command4_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const start = text.indexOf(open);
  if (start === -1) return { normalText: text, calls: [] };
  const normalText = text.slice(0, start);
  const bodyStart = start + open.length;
  const end = text.indexOf(close, bodyStart);
  const body = text.slice(bodyStart, end === -1 ? text.length : end);
  const payload = readPayload(body, context);
  if (payload === undefined) return { normalText, calls: [] };
  return { normalText, calls: parseBaseJson(normalize(payload), context) };
}

function readPayload(body: string, context: ParseContext): PyValue | undefined {
  const whole = catchPython(() => parseOrjson(body), "ValueError", "TypeError", "RecursionError");
  if (whole !== undefined) return whole;
  try {
    return parsePartialJson(body);
  } catch (error) {
    if (error instanceof CompletionAssertion && !isSince(sglangVersion(context), "2026-08")) {
      throw new PythonError("ValueError", "the assertion is not caught");
    }
    if (error instanceof PythonError && error.exception !== "RecursionError") return undefined;
    throw error;
  }
}

/**
 * Renames Cohere's fields to those of the other formats, and drops entries that are not objects.
 */
function normalize(payload: PyValue): PyValue {
  const entries = isPyDict(payload) ? [payload] : payload;
  if (!isPyList(entries)) return [];
  return entries.filter(isPyDict).map((entry) => {
    const renamed = new Map(entry);
    const toolName = renamed.get("tool_name");
    if (!renamed.has("name") && toolName !== undefined) {
      renamed.set("name", toolName);
      renamed.delete("tool_name");
    }
    renamed.delete("tool_call_id");
    return renamed;
  });
}

/**
 * Cohere Command A: a list of `{"tool_call_id": …, "tool_name": …, "parameters": …}` in a block.
 */
export const cohereCommand4 = defineParser({
  name: "cohere_command4",
  markers: [open],
  readings: {
    sglang: sglangReading({
      marker: open,
      detect,
    }),
    vllm: cohereReading("command4"),
  },
  findBlocks: findCohereBlocks,
});
