import {
  isPyList,
  parsePythonJson,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { callsOfList } from "../../vllm/json-entry.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";
import { findClosed } from "../../shared/tags/between-tags.ts";

const open = "<tool_calls>";
const close = "</tool_calls>";
/** The text that the template writes before an answer. */
const speaker = "助手：";

/** Finds the first block outside of the reasoning that contains JSON. */
function findCalls(text: string): { value: PyValue; start: number } | undefined {
  const thoughts = findClosed(text, "<think>", "</think>");
  let next = 0;
  for (const { inner, start, end } of findClosed(text, open, close)) {
    while ((thoughts[next]?.end ?? Infinity) <= start) next += 1;
    const thought = thoughts[next];
    if (thought !== undefined && start > thought.start && end < thought.end) continue;
    const value = catchPython(() => parsePythonJson(pythonStrip(inner)));
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
  readings: {
    vllm: vllmReading({
      release: holdsAll,
      catchesAll: true,
      extract,
    }),
  },
  json: { open, close },
});
