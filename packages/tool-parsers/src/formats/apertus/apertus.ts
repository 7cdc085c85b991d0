import {
  decodePythonJsonAt,
  isPyDict,
  isPyList,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { blocksOfPayload, readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { invalidJson, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmApertus2509 } from "./vllm-apertus.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const prefix = "<|tools_prefix|>";
const open = `${prefix}[`;
const close = "<|tools_suffix|>";

/**
 * SGLang's detector for Apertus: lists of `{name: arguments}`. The text outside the blocks is kept.
 * A block that cannot be read ends the search.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/apertus2509_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const normal: string[] = [];
  const calls: CompatCall[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(open, position);
    if (start === -1) break;
    const json = text.slice(start + prefix.length);
    const list = catchPython(() => decodePythonJsonAt(json, 0), "JSONDecodeError");
    const end = list === undefined ? -1 : text.indexOf(close, start + prefix.length + list.end);
    if (list === undefined || end === -1) break;
    normal.push(text.slice(position, start));
    for (const entry of isPyList(list.value) ? list.value : []) {
      const call = readEntry(entry, context, calls.length);
      if (call !== undefined) calls.push(call);
    }
    position = end + close.length;
  }
  return { normalText: pythonStrip(normal.join("") + text.slice(position)), calls };
}

function readEntry(
  entry: PyValue,
  context: ParseContext,
  toolIndex: number,
): CompatCall | undefined {
  const [first] = isPyDict(entry) ? entry : [];
  if (first === undefined) return undefined;
  const [name, value] = first;
  if (!context.toolPositions.has(name) && !forwardsUnknown(context)) return undefined;
  const argumentsText = writeJson(value ?? new Map());
  return { name, argumentsText, toolIndex };
}

function readBlocks({ span, inner, innerStart }: Frame): Block[] {
  const reading = readJson(inner.trim());
  if (reading.type === "problem") {
    return [{ span, problem: invalidJson(reading.detail) }];
  }
  const { value } = reading;
  const payload = { span, value: renameFields(value), json: inner, jsonStart: innerStart };
  return blocksOfPayload(payload);
}

/** Rewrites the entries as `{"name": …, "arguments": …}`. */
function renameFields(value: PyValue): PyValue {
  if (!isPyList(value)) return value;
  return value.map((entry) => {
    const [first] = isPyDict(entry) ? entry : [];
    if (first === undefined) return entry;
    return new Map<string, PyValue>([
      ["name", first[0]],
      ["arguments", first[1] ?? new Map<string, PyValue>()],
    ]);
  });
}

/** Apertus: `<|tools_prefix|>[{"name": {…}}, …]<|tools_suffix|>`. */
export const apertus2509 = defineParser({
  name: "apertus2509",
  aliases: ["apertus"],
  markers: [prefix],
  closingStops: [close],
  readings: {
    sglang: sglangReading({
      marker: open,
      strips: true,
      detect,
    }),
    vllm: vllmApertus2509,
  },
  blocks: {
    open: prefix,
    close,
    begins: /^\s*(?:\[|$)/,
    read: readBlocks,
  },
});
