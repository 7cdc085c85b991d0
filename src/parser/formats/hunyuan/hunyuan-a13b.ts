import { parsePythonJson } from "../../../python/json/json-parse.ts";
import { pythonStrip } from "../../../python/text/strip.ts";
import type { PyValue } from "../../../python/value.ts";
import { isPyList } from "../../../python/value.ts";
import { defineParser } from "../../grammar.ts";
import { findJsonTagBlocks } from "../../shared/json/json-tag-blocks.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { callsOfList } from "../../vllm/json-entry.ts";
import type { VllmExtraction } from "../../vllm/vllm-reading.ts";
import { vllmReading } from "../../vllm/vllm-reading.ts";

const open = "<tool_calls>";
const close = "</tool_calls>";
/** What the template puts before an answer. */
const speaker = "助手：";

/** Places of everything between an opening and a closing tag, tags included. */
function findSpans(text: string, from: string, to: string): [start: number, end: number][] {
  const found: [number, number][] = [];
  let start = text.indexOf(from);
  while (start !== -1) {
    const end = text.indexOf(to, start + from.length);
    if (end === -1) break;
    found.push([start, end + to.length]);
    start = text.indexOf(from, end + to.length);
  }
  return found;
}

/** The first block outside of the reasoning that holds JSON. */
function findCalls(text: string): { value: PyValue; start: number } | undefined {
  const thoughts = findSpans(text, "<think>", "</think>");
  let next = 0;
  for (const [start, end] of findSpans(text, open, close)) {
    while ((thoughts[next]?.[1] ?? Infinity) <= start) next += 1;
    const thought = thoughts[next];
    if (thought !== undefined && start > thought[0] && end < thought[1]) continue;
    const json = pythonStrip(text.slice(start + open.length, end - close.length));
    const value = catchPython(() => parsePythonJson(json));
    if (value !== undefined) return { value, start };
  }
  return undefined;
}

function extract(text: string): VllmExtraction {
  const found = findCalls(text);
  if (found === undefined) return { content: text.replace(speaker, ""), calls: [] };
  const content = text.slice(0, found.start);
  if (!isPyList(found.value)) return { content: content === "" ? text : content, calls: [] };
  const calls = callsOfList(found.value);
  return { content: pythonStrip(content) === "" ? "" : content, calls };
}

/**
 * Hunyuan A13B: a JSON list of calls between tags.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/hunyuan_a13b_tool_parser.py`.
 */
export const hunyuanA13b = defineParser({
  name: "hunyuan_a13b",
  aliases: [],
  markers: [open],
  readings: {
    vllm: vllmReading({
      release: { stops: [], strips: false, holdsAll: true },
      extract: (text) => catchPython(() => extract(text)),
    }),
  },
  findBlocks: (text) =>
    findJsonTagBlocks(text, {
      open,
      close,
      fields: { name: "name", readArguments: (entry) => entry.get("arguments") },
    }),
});
