import { decodePythonJsonAt } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { callOfEntry } from "../../vllm/json-entry.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";

const open = "<function_call>";
const leadingSpace = unicodePattern(String.raw`^\s*`, "");

function extract(text: string): VllmExtraction {
  const starts = indexesOf(text, open);
  const calls = starts.map((start, index) => {
    const body = text.slice(start + open.length, starts[index + 1] ?? text.length);
    return callOfEntry(decodePythonJsonAt(body.replace(leadingSpace, ""), 0).value, "arguments");
  });
  return { content: text.slice(0, starts[0]), calls };
}

/**
 * Granite 20B function calling: a tag before each JSON object. Text after an object is lost.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/granite_20b_fc_tool_parser.py`.
 */
export const granite20bFc = defineParser({
  name: "granite-20b-fc",
  markers: [open],
  readings: {
    vllm: vllmReading({
      marker: open,
      catchesAll: true,
      extract,
    }),
  },
  json: { open },
});
