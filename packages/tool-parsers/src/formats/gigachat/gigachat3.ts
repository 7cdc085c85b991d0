import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  pythonRstrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, markerOnly } from "../../shared/tags/tag-blocks.ts";
import { parseBaseJson } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmGigachat3 } from "./vllm-gigachat3.ts";

const callMarkers = ["function call<|role_sep|>\n", "<|function_call|>"] as const;
const contentEnds = ["<|message_sep|>", "<|function_call|>"] as const;

/**
 * SGLang's detector for GigaChat 3: one call. Its JSON reaches to the end of the turn.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/gigachat3_detector.py`.
 */
function detect(turn: string, context: ParseContext): EngineResult {
  const text = dropEnd(turn);
  const call = findCall(text);
  const json = call === undefined ? "" : text.slice(call.jsonStart);
  const entry = catchPython(() => parsePythonJson(json, { strict: false }), "JSONDecodeError");
  if (call !== undefined && entry === undefined) return { normalText: text, calls: [] };
  const contentEnd = firstIndexOf(text, contentEnds)?.index ?? text.length;
  const normalText = text.slice(0, contentEnd);
  const isCall = isPyDict(entry) && entry.has("name") && isPyDict(entry.get("arguments"));
  return { normalText, calls: isCall ? parseBaseJson(dropParameters(entry), context) : [] };
}

/** Keeps only `name` and `arguments`. */
function dropParameters(entry: PyDict): PyDict {
  return new Map<string, PyValue>(
    [...entry].filter(([key]) => key === "name" || key === "arguments"),
  );
}

/** Drops an end-of-sequence marker from the end of the text. */
function dropEnd(text: string): string {
  return pythonRstrip(text).endsWith("</s>") ? text.slice(0, text.lastIndexOf("</s>")) : text;
}

function findCall(text: string): { start: number; jsonStart: number } | undefined {
  const first = firstIndexOf(text, callMarkers);
  return first && { start: first.index, jsonStart: first.index + first.marker.length };
}

function firstIndexOf(
  text: string,
  markers: readonly string[],
): { index: number; marker: string } | undefined {
  return markers
    .map((marker) => ({ index: text.indexOf(marker), marker }))
    .filter(({ index }) => index !== -1)
    .toSorted((left, right) => left.index - right.index)[0];
}

function findBlocks(turn: string): Block[] {
  const text = dropEnd(turn);
  const call = findCall(text);
  if (call === undefined) return [];
  const { start, jsonStart } = call;
  const json = text.slice(jsonStart);
  if (!/^\s*(?:\{|$)/.test(json)) return [markerOnly(start, text.slice(start, jsonStart))];
  const span = [start, text.length] as const;
  const entry = catchPython(() => parsePythonJson(json, { strict: false }));
  if (!isPyDict(entry)) {
    return [
      {
        span,
        problem: { status: "invalid-json", detail: "expected one JSON object up to the end" },
      },
    ];
  }
  const name = entry.get("name");
  const value = entry.get("arguments");
  const base = { span, ...(typeof name === "string" && { name }) };
  if (value === undefined) return [{ ...base, problem: malformed("the call has no arguments") }];
  return [{ ...base, argumentValue: value }];
}

/** GigaChat 3: `function call<|role_sep|>\n{"name": …, "arguments": …}` at the end of the turn. */
export const gigachat3 = defineParser({
  name: "gigachat3",
  markers: ["function call<|role_sep|>", "<|function_call|>"],
  readings: {
    sglang: sglangReading({
      release: { stops: [...callMarkers, ...contentEnds, "</s>"] },
      hasToolCall: (text) => callMarkers.some((marker) => text.includes(marker)),
      detect,
    }),
    vllm: vllmGigachat3,
  },
  findBlocks,
});
